"""The chat page: a log in, a cause with its proof and a patch out, in a browser."""
