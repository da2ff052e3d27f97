"""The `whycrash` command."""
