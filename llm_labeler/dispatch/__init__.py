"""Asking: many calls at a time, within limits, each answer kept as it comes."""

from llm_labeler.dispatch.dispatch import Outcome, ask_all, by_llm, together

__all__ = ["Outcome", "ask_all", "by_llm", "together"]
