"""Lexical similarity of texts: BM25, Jaccard, near-duplicates."""
