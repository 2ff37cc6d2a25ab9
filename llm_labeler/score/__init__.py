"""Scoring: how well LLMs and strategies do on pairs that people labelled."""

from llm_labeler.score.report import ScoreReport, ScoreRow
from llm_labeler.score.scoring import score

__all__ = ["ScoreReport", "ScoreRow", "score"]
