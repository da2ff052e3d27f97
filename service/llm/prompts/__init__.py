"""The texts that a model is instructed with."""
