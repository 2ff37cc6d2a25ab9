"""Positive pairs from the structure of documents: tables, or folders of Markdown, HTML and text."""

from pairkit.extracting.extract_pairs import make_mined

__all__ = ["make_mined"]
