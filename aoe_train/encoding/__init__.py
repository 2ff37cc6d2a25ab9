"""Files of texts to files of vectors: `source` cuts a file into parts, `run` has them encoded."""
