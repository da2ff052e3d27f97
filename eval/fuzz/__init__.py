"""Coverage-guided fuzzing of all readers of a user's files, with atheris."""
