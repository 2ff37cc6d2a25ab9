"""Positive pairs from the structure of documents: records, folders of Markdown, HTML and text, long texts."""

from pairkit.mining.mine import make_mined

__all__ = ["make_mined"]
