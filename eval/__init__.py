"""How good the answers are, and how fast."""
