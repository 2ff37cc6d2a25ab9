"""Tokens of texts, with special tokens and prompts."""
