"""Settings of what makes a dataset: detection, texts, pairs and splits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from gis_builder.settings.strategies import STRATEGIES, Rank, qualified_name
from gis_builder.store.records import Relation
from pairkit.app.settings import Settings


class DetectSettings(Settings):
    """What counts as a duplicate."""

    # count a duplicate of another repository's issue, which is uncertain by default
    allow_cross_repository: bool = False
    # leave out duplicates below this confidence, and count them
    min_confidence: float = Field(default=0.0, ge=0, le=1)


class PoolSettings(Settings):
    """Issues that are fetched only to serve in negatives; a sweep has them all anyway."""

    per_positive: float = Field(default=1.0, ge=0)  # issues to fetch for each positive of a repository
    at_least: int = Field(default=50, ge=0)  # issues to fetch of each repository at least


PAPER_SIZES = (18565.0, 1547.0, 1548.0)  # rows of train, validation, test in the papers' Table 7
PAPER_RATIO = 10622 / 11038  # negatives a positive, same table
SPLITS = ("train", "validation", "test")


class TextSettings(Settings):
    """When a rendered text is too small to be worth a pair."""

    min_chars: int = Field(
        default=20, ge=1, description="characters that a text has at least, blanks not counted"
    )
    min_words: int = Field(default=4, ge=1, description="words that a text has at least")


def _relations(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.strip() == "all":
        return tuple(Relation)
    names = [name.strip() for name in value.split(",")]
    if unknown := [name for name in names if name not in tuple(Relation)]:
        raise ValueError(f"{unknown[0]!r} is none; expected all, or some of {','.join(Relation)}")
    return tuple(relation for relation in Relation if relation in names)


def _negatives(value: object) -> str | Rank:
    known = value in STRATEGIES if isinstance(value, str) else callable(value)
    if not known:
        raise ValueError(f"expected {', '.join(STRATEGIES)}, or from Python a function of texts")
    return cast("str | Rank", value)


def _name_of_negatives(value: str | Rank) -> str:
    return value if isinstance(value, str) else qualified_name(value)


class PairSettings(Settings):
    """How positives are taken from clusters and negatives are drawn."""

    relations: Annotated[tuple[Relation, ...], BeforeValidator(_relations), Field(min_length=1)] = Field(
        default=(Relation.DUPLICATE,),
        description="pairs of which relations become positives; the default are those of which at least 0.95 "
        "are the same problem (benchmarks/README.md)",
    )
    all_within_cluster: bool = Field(
        default=False, description="every two issues of a cluster, not only its edges"
    )
    cluster_cap: int = Field(default=100, ge=1, description="at most this many positives from one cluster")
    negatives: Annotated[
        Any, AfterValidator(_negatives), PlainSerializer(_name_of_negatives, when_used="json")
    ] = Field(
        default="random",
        description="random, as in the papers; hard: the most alike by BM25; mixed: half of each; in Python "
        "also a function",
    )
    match: Literal["time", "none"] = Field(
        default="time",
        description="what negatives share with positives: time, the gap between the openings of the issues",
    )
    ratio: float = Field(default=PAPER_RATIO, ge=0, le=10, description="negatives for each positive")
    similar_at: float = Field(
        default=0.8, gt=0.5, le=1, description="Jaccard of word triples from which texts are near-identical"
    )
    guard_share: float = Field(
        default=0.35,
        gt=0,
        le=1,
        description="BM25 score, as a share of an issue's score with itself, that bars a negative",
    )


def _sizes(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        sizes = tuple(float(part) for part in value.replace("_", "").split(","))
    except ValueError:
        sizes = ()
    if len(sizes) != len(SPLITS):
        raise ValueError("expected three numbers such as 0.8,0.1,0.1 or 18565,1547,1548")
    return sizes


class SplitSettings(Settings):
    """Sizes of train, validation and test: fractions that add up to 1, or exact numbers of rows."""

    sizes: Annotated[tuple[float, float, float] | None, BeforeValidator(_sizes)] = Field(
        default=None,
        description="three fractions or three row counts; unset: all there is, in the papers' proportions",
    )

    @model_validator(mode="after")
    def _check(self) -> SplitSettings:
        if self.sizes is not None:
            if min(self.sizes) < 0 or self.sizes[0] == 0:
                raise ValueError("no size may be negative, and train may not be 0")
            if not self.exact and abs(sum(self.sizes) - 1) > 1e-6:
                raise ValueError(
                    f"fractions add up to 1, these to {sum(self.sizes):g}; row counts are whole numbers"
                )
        return self

    @property
    def exact(self) -> bool:
        """Whether the sizes are numbers of rows."""
        return (
            self.sizes is not None
            and sum(self.sizes) > 1 + 1e-6
            and all(size == int(size) for size in self.sizes)
        )

    @property
    def fractions(self) -> tuple[float, float, float]:
        """The sizes as shares of the whole."""
        sizes = self.sizes or PAPER_SIZES
        total = sum(sizes)
        return sizes[0] / total, sizes[1] / total, sizes[2] / total
