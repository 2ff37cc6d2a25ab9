"""Training text embeddings with angles."""
