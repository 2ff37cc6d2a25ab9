"""Scoring: how well LLMs and strategies do on pairs that people labelled."""

from llm_labeler._score.report import ScoreReport, ScoreRow
from llm_labeler._score.scoring import score

__all__ = ["ScoreReport", "ScoreRow", "score"]
