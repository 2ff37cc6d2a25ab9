"""The store of a labelling run: one private SQLite file with every raw answer, failure and cent."""

from llm_labeler._store.batches import Batch
from llm_labeler._store.reading import chunks
from llm_labeler._store.store import Store

__all__ = ["Batch", "Store", "chunks"]
