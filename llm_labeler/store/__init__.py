"""The store of a labelling run: one private SQLite file with every raw answer, failure and cent."""

from llm_labeler.store.store import AnswerStore, SubmittedBatch, chunks

__all__ = ["AnswerStore", "SubmittedBatch", "chunks"]
