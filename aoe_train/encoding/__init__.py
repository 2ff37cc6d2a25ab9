"""Files of texts to files of vectors: `source` cuts a file into parts, workers encode, `run` joins the vectors."""
