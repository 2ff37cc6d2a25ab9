"""Rows of pair datasets."""

import polars as pl


def pair(text1, text2, label=1, **more):
    """One row, by default a positive; with lists, the columns of several rows."""
    return {"text1": text1, "text2": text2, "label": label, **more}


def pair_table(rows):
    """A table of rows of two texts and a label."""
    return pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row")
