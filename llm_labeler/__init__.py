"""Pairs from unlabelled text with LLMs."""

__all__: list[str] = []
