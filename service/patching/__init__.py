"""Changes of a job's own files, as unified diffs."""
