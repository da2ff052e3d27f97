"""Files beside a log that say what a job did: dumps of its collectives. Each is hostile until it was read."""
