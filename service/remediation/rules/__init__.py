"""Rules that compute the value of a change from the facts of a log."""
