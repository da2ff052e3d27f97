"""The store, in SQLite by default or PostgreSQL by URL: triages, batches with their jobs, keys, the audit."""
