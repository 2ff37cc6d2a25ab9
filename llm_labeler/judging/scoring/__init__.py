"""Scoring: how well LLMs and strategies do on pairs that people labelled."""

from llm_labeler.judging.scoring.report import ScoreReport, ScoreRow
from llm_labeler.judging.scoring.scoring import score

__all__ = ["ScoreReport", "ScoreRow", "score"]
