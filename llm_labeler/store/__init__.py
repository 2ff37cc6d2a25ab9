"""The store of a labelling run: one private SQLite file with every raw answer, failure and cent."""
