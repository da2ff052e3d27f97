"""Batches: many jobs triaged by workers; an accepted job survives the end of any process."""
