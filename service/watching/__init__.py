"""Jobs that are watched: run beside us, or found as they fail."""
