"""What people together say of a pair: an adjudicator's word, else what most of them said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

import polars as pl

from pairkit.errors import DataError
from pairkit.judgements.records import ADJUDICATOR, GRADES, LABELS, REVIEWER, SKIP, Judgement
from pairkit.judgements.store import Store

_APART = 1  # grades that differ by no more are no dispute


class Decision(NamedTuple):
    """The outcome of a pair.

    Attributes:
        state: decided; unsure, where nobody could tell; disputed, where as many say one thing as another.
        value: 1 or 0, or the mean grade, from 0 to 5; None unless decided.
        people: Whose judgements it rests on.
        relation: What most of them say that the texts are to each other; empty where nobody says it.
    """

    state: Literal["decided", "unsure", "disputed"]
    value: float | None
    people: tuple[str, ...]
    relation: str


def decide(judgements: Iterable[Judgement]) -> dict[str, Decision]:
    """The outcome of each pair that anybody judged, by pair id; second looks and skips have no part in it."""
    heard = defaultdict[str, list[Judgement]](list)
    for judgement in judgements:
        if judgement.turn == 0 and judgement.answer != SKIP:
            heard[judgement.pair_id].append(judgement)
    return {pair_id: _decision(said) for pair_id, said in sorted(heard.items())}


def disputed(judgements: Iterable[Judgement]) -> set[str]:
    """Pairs of which reviewers say different things: yes and no, or grades more than one apart."""
    said = defaultdict[str, list[Judgement]](list)
    for judgement in judgements:
        if judgement.turn == 0 and judgement.role == REVIEWER and _number(judgement) is not None:
            said[judgement.pair_id].append(judgement)
    return {pair_id for pair_id, several in said.items() if _differ(several)}


def _differ(judgements: list[Judgement]) -> bool:
    numbers = [number for number in map(_number, judgements) if number is not None]
    return max(numbers) - min(numbers) > (_APART if judgements[0].answer in GRADES else 0)


def _decision(said: list[Judgement]) -> Decision:
    final = [judgement for judgement in said if judgement.role == ADJUDICATOR] or said
    people = tuple(sorted({judgement.person for judgement in final}))
    relations = Counter(judgement.relation for judgement in final if judgement.relation)
    relation = max(sorted(relations), key=relations.__getitem__, default="")
    values = [number for number in map(_number, final) if number is not None]
    if not values:
        return Decision("unsure", None, people, relation)
    if any(judgement.answer in GRADES for judgement in final):
        return Decision("decided", fmean(values), people, relation)
    mean = fmean(values)
    if mean == 0.5:
        return Decision("disputed", None, people, relation)
    return Decision("decided", float(mean > 0.5), people, relation)


def _number(judgement: Judgement) -> float | None:
    return LABELS.get(judgement.answer, GRADES.get(judgement.answer))


def judged_pairs(path: Path) -> pl.DataFrame:
    """A review's decided pairs with people's labels: text1, text2, label, reviewers.

    Raises:
        ConfigError: It can't be opened.
        DataError: It is damaged, or nothing is decided yet.
    """
    with Store(path) as store:
        whole = store.settings.asked == "labels"
        pairs, decisions = store.pairs, decide(store.judgements())
    rows = [
        {
            "text1": pairs[pair_id].text1,
            "text2": pairs[pair_id].text2,
            "label": found.value,
            "reviewers": [*found.people],
        }
        for pair_id, found in decisions.items()
        if found.value is not None
    ]
    if not rows:
        raise DataError("no pair is decided yet; judge some with `pairs review`", path=path)
    kind = pl.Int64 if whole else pl.Float32
    return pl.DataFrame(rows).with_columns(pl.col("label").cast(kind))
