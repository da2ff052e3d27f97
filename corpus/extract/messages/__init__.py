"""The message atlas out of releases: where a program tells of a failure, and what it checked before."""
