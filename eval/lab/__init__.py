"""Failures made for real on one CPU machine, each recorded with its truth as a labelled incident."""
