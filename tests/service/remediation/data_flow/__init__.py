"""Tests of the way from failing statements to the job's own options."""
