"""A model behind HTTP: `server` (routes) ► `requests` (bodies, limits, errors) ► `batching` ► the model."""
