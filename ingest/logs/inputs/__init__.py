"""Where a log is, and in what wrapping: files, folders, archives, pipes; bytes come out, bounded."""
