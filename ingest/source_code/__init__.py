"""Code that lies on the machine and that a traceback leads to: found, opened and read, never run."""
