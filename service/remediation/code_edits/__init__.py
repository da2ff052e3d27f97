"""Edits of the job's own code: the statement that failed, and what follows from the message."""
