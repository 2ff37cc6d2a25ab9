"""What a rule of hard negatives makes: a change of a sentence, and of which kind it is."""

from __future__ import annotations

from typing import NamedTuple

from llm_labeler._providers.wordnet.sentence import Change, Edit
from llm_labeler._records import ChangeKind


class Turned(NamedTuple):
    """A change that gives a sentence another meaning."""

    kind: ChangeKind
    change: Change


def turned(kind: ChangeKind, sure: float, *edits: Edit) -> Turned:
    """A change of some edits."""
    return Turned(kind, Change(sure, edits))
