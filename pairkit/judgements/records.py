"""The records of a review: its settings, its pairs, who judges, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from pairkit.config import Settings
from pairkit.records import LabelKind

Role = Literal["reviewer", "adjudicator"]
REVIEWER: Role = "reviewer"
ADJUDICATOR: Role = "adjudicator"
Asked = Literal["labels", "grades"]  # yes or no; or a number from 0 to 5

UNSURE, SKIP = "unsure", "skip"
LABELS: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
GRADES: Mapping[str, float] = {str(grade): float(grade) for grade in range(6)}
TOP_GRADE = 5.0


class ReviewSettings(Settings):
    """What a review was begun with.

    Attributes:
        dataset: What the dataset is called.
        digest: Of its pairs and labels.
        pairs: How many different pairs it has.
        label_kind: What its labels are.
        top: The highest label of their scale: 1, or of some scores 5.
        asked: What people are asked for.
        question: In words.
        relations: What two texts of a pair may be to each other, where that is asked as well.
        strata: What strata differ in.
        active: The column by which doubtful pairs were chosen; None: a random sample.
        seed: Decides which pairs, and in which order.
        again: The share of a person's pairs that the person sees twice.
        each: How many people judge each pair; None: all.
        common: Words that say little, as many texts of the dataset have them.
    """

    dataset: str
    digest: str
    pairs: int
    label_kind: LabelKind
    top: float
    asked: Asked
    question: str
    relations: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()
    active: str | None = None
    seed: int = 42
    again: Annotated[float, Field(ge=0, le=1)] = 0.05
    each: Annotated[int, Field(ge=1)] | None = None
    common: tuple[str, ...] = ()

    @property
    def answers(self) -> Mapping[str, float]:
        """What decides a pair, and the number that it stands for."""
        return LABELS if self.asked == "labels" else GRADES


class JudgedPair(NamedTuple):
    """A pair of the sample.

    Attributes:
        pair_id: A digest of both texts.
        text1: One text.
        text2: The other.
        label: What the dataset says.
        stratum: Which it was drawn from.
        facts: What is known of it, such as its split and evidence.
        origin: Where it is from, to be shown once it was judged.
    """

    pair_id: str
    text1: str
    text2: str
    label: float
    stratum: str
    facts: Mapping[str, str]
    origin: Mapping[str, str]


class Person(NamedTuple):
    """Somebody who judges; the token is the person's own link."""

    name: str
    role: Role
    token: str


class Judgement(NamedTuple):
    """What one person says of a pair.

    Attributes:
        key: Made by the page, so that what is sent twice is one.
        pair_id: The pair.
        person: Who.
        role: As whom.
        turn: 0, or 1 where the person sees the pair again.
        answer: yes, no, or a grade; unsure, or skip.
        relation: What the texts are to each other; empty where nothing was said.
        note: Words.
        seconds: How long the pair was in view.
        at: When, ISO 8601, UTC.
    """

    key: str
    pair_id: str
    person: str
    role: Role
    turn: int
    answer: str
    relation: str
    note: str
    seconds: float
    at: str
