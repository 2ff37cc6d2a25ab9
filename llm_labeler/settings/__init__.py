"""Settings of a labelling run, and the kinds of LLMs and strategies."""
