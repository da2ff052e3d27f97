"""Versions of packages that fit together: which the log shows, and the smallest move that mends them."""
