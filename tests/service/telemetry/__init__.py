"""Tests of what the machine says."""
