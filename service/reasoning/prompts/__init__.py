"""What models are told: the instructions, apart from the matter of a log."""
