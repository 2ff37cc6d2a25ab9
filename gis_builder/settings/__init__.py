"""The settings of a build and of an archive, with a section for each stage."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from gis_builder.settings.crawl_settings import CrawlSettings as CrawlSettings
from gis_builder.settings.negative_strategies import STRATEGIES, Rank, qualified_name
from gis_builder.store import Relation
from pairkit.base.settings import Settings, between_commas, setting

# Rows of train, validation, test in the papers' Table 7.
PAPER_SIZES = (18565.0, 1547.0, 1548.0)
PAPER_RATIO = 10622 / 11038  # negatives for each positive in the same table
SPLITS = ("train", "validation", "test")


class DetectSettings(Settings):
    """The criteria of a duplicate."""

    allow_cross_repository: bool = setting(
        False,
        "Accept duplicates of issues in other repositories; by default their verdict is uncertain. Imported "
        "tickets of several projects are one tracker and don't need it.",
    )
    min_confidence: float = setting(
        0.0,
        "Duplicates below this confidence become uncertain.",
        ge=0,
        le=1,
    )


class PoolSettings(Settings):
    """The sample of issues that are fetched only for negatives."""

    per_positive: float = setting(
        1.0,
        "Possible negatives to fetch for each positive of a repository.",
        ge=0,
    )
    at_least: int = setting(
        50,
        "Minimum number of possible negatives to fetch per repository.",
        ge=0,
    )


class TextSettings(Settings):
    """Minimum size of a rendered text."""

    min_chars: int = setting(
        20,
        "Minimum number of characters of a text, not counting spaces.",
        ge=1,
    )
    min_words: int = setting(
        4,
        "Minimum number of words of a text; in scripts without spaces, of pairs of characters.",
        ge=1,
    )


def _relations(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.strip() == "all":
        return tuple(Relation)
    names = between_commas(value)
    if unknown := [name for name in names if name not in tuple(Relation)]:
        raise ValueError(
            f"unknown relation {unknown[0]!r}; expected all, or some of {','.join(Relation)}"
        )
    return tuple(relation for relation in Relation if relation in names)


def _negatives(value: object) -> str | Rank:
    is_known = value in STRATEGIES if isinstance(value, str) else callable(value)
    if not is_known:
        raise ValueError(
            f"expected {', '.join(STRATEGIES)}, or in Python a function of texts"
        )
    return cast("str | Rank", value)


class PairSettings(Settings):
    """The choice of positives and negatives."""

    relations: Annotated[
        tuple[Relation, ...], BeforeValidator(_relations), Field(min_length=1)
    ] = setting(
        (Relation.DUPLICATE,),
        "Relations whose pairs become positives: duplicate, same, reported, superseded, tracked, "
        "part-of, or all.",
    )
    min_same_probability: float = setting(
        0.0,
        "Minimum probability that the two issues of a positive describe the same problem, as estimated from "
        "their texts; 0.9 is strict.",
        ge=0,
        le=1,
    )
    all_within_cluster: bool = setting(
        False,
        "Pair all issues of a cluster of duplicates, not only each duplicate with its original.",
    )
    cluster_cap: int = setting(
        100,
        "Maximum number of positives from one cluster of duplicates.",
        ge=1,
    )
    negatives: Annotated[
        Any,
        AfterValidator(_negatives),
        PlainSerializer(qualified_name, when_used="json"),
    ] = setting(
        "random",
        "How negatives are chosen: random (as in the papers), hard (most similar by BM25) or mixed (half "
        "of each). In Python also a function: it takes the texts of one repository and split, and "
        "returns for each text the indices of other texts, best first: `[[2, 1], [0], ...]` tries text 2 "
        "before text 1 for text 0. Linked or too similar issues are still excluded. `run.json` records "
        "the function's qualified name.",
    )
    match: Literal["time", "none"] = setting(
        "time",
        "What negatives share with positives: time (the same gaps between the openings of their issues) "
        "or none.",
    )
    ratio: float = setting(
        PAPER_RATIO,
        "Number of negatives for each positive. The papers have 0.96.",
        ge=0,
        le=10,
    )
    similar_at: float = setting(
        0.8,
        "Jaccard similarity of word trigrams from which texts are near-duplicates.",
        gt=0.5,
        le=1,
    )
    guard_share: float = setting(
        0.35,
        "BM25 score that excludes a negative as too similar, as a share of an issue's score with itself.",
        gt=0,
        le=1,
    )


def _sizes(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        sizes = tuple(float(part) for part in value.replace("_", "").split(","))
    except ValueError:
        sizes = ()
    if len(sizes) != len(SPLITS):
        raise ValueError(
            "expected three numbers such as 0.8,0.1,0.1 or 18565,1547,1548"
        )
    return sizes


class SplitSettings(Settings):
    """Sizes of train, validation and test: fractions that add up to 1, or exact numbers of rows."""

    sizes: Annotated[tuple[float, float, float] | None, BeforeValidator(_sizes)] = (
        setting(
            None,
            "Sizes of train, validation and test: three fractions, or three numbers of pairs. Default: all "
            "pairs, in the papers' proportions.",
        )
    )

    @model_validator(mode="after")
    def _check(self) -> SplitSettings:
        if self.sizes is not None:
            if min(self.sizes) < 0 or self.sizes[0] == 0:
                raise ValueError("sizes must not be negative, and train must not be 0")
            if not self.exact and abs(sum(self.sizes) - 1) > 1e-6:
                raise ValueError(
                    f"fractions must add up to 1, not {sum(self.sizes):g}; row counts must be whole numbers"
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


class DatasetSettings(Settings):
    """The settings that builds and archives share."""

    seed: int = setting(42, "Seed of every random choice.")
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()


class BuildSettings(DatasetSettings):
    """A dataset from a crawl."""

    crawl: CrawlSettings = CrawlSettings()


class LimitSettings(Settings):
    """Limits on repositories, so that a few large ones don't dominate."""

    min_closed: int = setting(
        1, "Minimum number of closed issues of a repository.", ge=1
    )
    per_repo_max: int | None = setting(
        None, "Maximum number of positives of a repository.", ge=1
    )


class ArchiveSettings(DatasetSettings):
    """A dataset from GH Archive."""

    limits: LimitSettings = LimitSettings()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.detect.allow_cross_repository:
            raise ValueError(
                "detect.allow_cross_repository: not available, because GH Archive is judged by repository"
            )
        if self.pair.negatives not in STRATEGIES:
            raise ValueError(
                "pair.negatives: expected random, hard or mixed; GH Archive takes no function"
            )
        return self
