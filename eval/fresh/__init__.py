"""Public logs that nobody here had seen: rounds of pointers and labels, scored once at first sight."""
