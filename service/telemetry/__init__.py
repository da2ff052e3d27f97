"""What the machine itself says of a crash: readings, where they come from, and what they prove."""
