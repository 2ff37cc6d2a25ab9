"""Tokenisation, with special tokens and prompts."""
