"""Embedders, which turn texts into vectors: local models, functions and models behind an endpoint."""
