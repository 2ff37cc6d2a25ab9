"""Search indexes of texts: building them, searching, near-duplicates, mining negatives, and serving."""
