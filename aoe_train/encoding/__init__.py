"""Encodes files of texts as files of vectors: `source` divides a file into parts, `encode_run` encodes them."""
