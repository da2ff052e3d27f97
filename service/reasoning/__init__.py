"""Weighing of evidence and wording of the answer."""
