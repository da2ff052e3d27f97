"""Closed loops: a job fails for real, the first change proposed for it is made, and the job runs again."""
