"""Texts in, pairs out: reading, filtering, splitting and writing."""
