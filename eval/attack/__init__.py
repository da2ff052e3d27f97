"""Attacks on a server and on the command line that are started for it, on loopback alone."""
