"""Pairs from unlabelled text with LLMs."""
