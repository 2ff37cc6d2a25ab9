"""Training rows: reading, checking, batching."""
