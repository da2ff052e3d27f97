"""Rules that compute a setting's new value from what the log states."""
