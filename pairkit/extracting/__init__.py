"""Positive pairs from the structure of documents: tables, or folders of Markdown, HTML and text."""
