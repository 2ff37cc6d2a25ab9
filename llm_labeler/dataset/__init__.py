"""Read the sentences, and split and write the pairs."""
