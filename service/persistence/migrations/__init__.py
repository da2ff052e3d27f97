"""The schema's versions, and what turns one into the next."""
