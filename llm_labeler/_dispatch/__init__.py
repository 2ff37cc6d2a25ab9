"""Asking: many calls at a time, within limits, each answer kept as it comes."""

from llm_labeler._dispatch.dispatch import ask_all
from llm_labeler._dispatch.problems import by_llm, together
from llm_labeler._dispatch.progress import Outcome

__all__ = ["Outcome", "ask_all", "by_llm", "together"]
