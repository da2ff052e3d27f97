"""`python -m whycrash`: the command, also where its script is not on the path."""

from ui.cli.main import main

if __name__ == "__main__":
    main()
