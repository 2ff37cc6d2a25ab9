"""Serves a model over HTTP: `server` (routes) ► `requests` (bodies, limits, errors) ► `batching` ► model."""
