"""What every face of whycrash asks: the triage service."""
