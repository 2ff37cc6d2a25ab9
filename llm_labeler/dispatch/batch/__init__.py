"""Labelling through OpenAI's Batch API, across sessions."""

from llm_labeler.dispatch.batch.run import run_batch

__all__ = ["run_batch"]
