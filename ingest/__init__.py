"""From raw text to searchable evidence."""
