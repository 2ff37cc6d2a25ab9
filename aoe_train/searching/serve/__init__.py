"""Serves a model over HTTP: `embedding_server` (routes) ► `requests` (bodies) ► `batching` ► model."""
