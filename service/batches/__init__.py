"""Batches: many jobs triaged by workers, whatever dies meanwhile."""
