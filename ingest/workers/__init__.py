"""The worker pool of server, batches and ingestion, with two backends: processes of this machine, and Ray."""
