"""Serves a model over HTTP: `embedding_server` (routes) ► `batching` (requests and their batches) ► model."""
