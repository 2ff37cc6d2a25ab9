"""Hard negatives for positives: `dataset` > `rank` (nearest candidates) > `mine` > `run` (n-tuples)."""
