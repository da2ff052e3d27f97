"""Jobs that are watched: run under whycrash, or found as they end."""
