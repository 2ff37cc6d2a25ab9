"""Providers of LLMs: servers, Python functions, and rules."""
