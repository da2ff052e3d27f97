"""The job's own configuration, from its files and from what it printed of itself."""
