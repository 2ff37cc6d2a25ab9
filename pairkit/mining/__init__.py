"""Positive pairs from the structure of documents: tables, or folders of Markdown, HTML and text."""

from pairkit.mining.mine import make_mined

__all__ = ["make_mined"]
