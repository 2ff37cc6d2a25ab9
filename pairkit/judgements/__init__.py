"""What people say of pairs: one SQLite file, in which each judgement is committed at once."""

from pairkit.judgements.decisions import Decision, decide, disputed, judged_pairs
from pairkit.judgements.records import (
    ADJUDICATOR,
    GRADES,
    LABELS,
    REVIEWER,
    JudgedPair,
    Judgement,
    Person,
    ReviewSettings,
)
from pairkit.judgements.store import ENDING, AnsweredError, Store

__all__ = [
    "ADJUDICATOR",
    "ENDING",
    "GRADES",
    "LABELS",
    "REVIEWER",
    "AnsweredError",
    "Decision",
    "JudgedPair",
    "Judgement",
    "Person",
    "ReviewSettings",
    "Store",
    "decide",
    "disputed",
    "judged_pairs",
]
