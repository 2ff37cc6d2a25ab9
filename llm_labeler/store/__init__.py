"""The store of a labelling run: one private SQLite file with every raw answer, failure and cent."""

from llm_labeler.store.store import Batch, Store, chunks

__all__ = ["Batch", "Store", "chunks"]
