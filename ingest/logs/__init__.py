"""One job's output, read into a CrashReport."""
