"""People judge a sample of a dataset's pairs in a browser; the results are reported and applied."""
