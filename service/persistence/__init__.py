"""What is kept, in SQLite by default and in PostgreSQL by URL: triages, batches with their jobs, keys, the audit log."""
