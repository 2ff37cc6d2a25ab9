"""The settings of a build and of an archive, with a section for each stage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from gis_builder.settings.negative_strategies import STRATEGIES, Rank, qualified_name
from gis_builder.store import Relation
from pairkit.base.errors import ConfigError
from pairkit.base.settings import Settings, between_commas, setting
from pairkit.base.system.address import Address, read_address

# Rows of train, validation, test in the papers' Table 7.
PAPER_SIZES = (18565.0, 1547.0, 1548.0)
PAPER_RATIO = 10622 / 11038  # negatives for each positive in the same table
SPLITS = ("train", "validation", "test")

# Phrases that are searched in the comments of closed issues, chosen on rust-lang/rust by the number of
# duplicates per fetched thread (benchmarks/README.md). GitHub's search matches whole words. "duplicate of" is
# for repositories where "duplicate" is skipped because a template contains it. The last are misspellings and
# in other languages.
PHRASES = tuple(
    between_commas("""
    duplicate, duplicate of, duplicates, duplicated, dup, dups, dupe, dupes, in favor of, in favour of,
    same as, same issue, same bug, same problem, same thing, subsume, subsumes, subsumed, superseded,
    superceded, superseeded, supersedes, replaced by, replaced with, covered by, covers this,
    instance of, subset of, special case of, tracked in, tracked by, tracked on, track this,
    tracking issue, tracking this, identical to, exactly the same, folded into, folding this,
    merged into, moving this, over to, continued in, already reported, already filed, already open,
    already tracked, already an issue, already a bug, already been filed, existing issue, existing bug,
    existing discussion, another issue, open bug, known bug, known issue, filed as, filed this already,
    reported as, already noted, opened twice, double post, double filing, subissue, sub issue, subbug,
    sub bug, subsection of, just part of, this is part of, more general, covers the, replacing with,
    rolling this, closing for, close this as, discuss further, this is basically, this is essentially,
    looks like this is, oh this is, whoops this is, really is, exactly like, almost the same,
    better description, replace this, replaces this, to cover this, this is covered, about this already,
    there is already, reported this as, known problem, reposted, is tracking, tracked at, falls under,
    falling under,
    duplcate, dupilcate, duplciate, dulpicate, duplicat, dublicate, duplikat, doppelt, doublon,
    duplicado, duplicada, duplicato, дубликат, 重复, 重複, 중복
""")
)
TITLE_WORDS = ("duplicate", "dup", "dupe")

# Phrases that are searched in bodies. They are longer, because issue templates mention duplicates.
BODY_PHRASES = ("duplicate of", "dup of", "dupe of", "same issue as", "same problem as")


def read_root(url: str) -> Address:
    """Parse the root URL of GitHub's API."""
    root = read_address(url, "api_url", "https://api.github.com")
    if root.path.endswith("/graphql"):
        raise ConfigError(
            f"api_url is {root.url}: expected the API's root, such as"
            " https://api.github.com or https://git.example.com/api/v3"
        )
    return root


class CrawlSettings(Settings):
    """The crawl: server, strategy, batch sizes, retries and waits."""

    api_url: str = setting("https://api.github.com", "Root URL of the server's API.")
    plain_http: bool = setting(
        False, "Allow sending the token to another machine over unencrypted http."
    )
    strategy: Literal["search", "all"] = setting(
        "search",
        "Issues to fetch: search (likely duplicates) or all (every issue with its comments).",
    )
    all_if_small: bool = setting(
        True,
        "Fetch all issues of a repository instead of searching it if that takes no more queries.",
    )
    include_private: bool = setting(False, "Also crawl private repositories.")

    phrases: tuple[str, ...] = setting(
        PHRASES, "Phrases to search for in the comments of closed issues."
    )
    title_words: tuple[str, ...] = setting(
        TITLE_WORDS, "Words to search for in the titles of issues."
    )
    body_phrases: tuple[str, ...] = setting(
        BODY_PHRASES, "Phrases to search for in the bodies of issues."
    )
    max_phrase_share: float = setting(
        0.3,
        "Skip a phrase that matches more than this share of the issues: it is from a bot or a template.",
        gt=0,
        le=1,
    )
    label_query: str = setting(
        "dup", "Also fetch issues with a label whose name contains this text."
    )

    thread_batch: int = setting(
        49,
        "Number of threads in one query; 49 of 3 connections cost one point (connections / 100, rounded).",
        ge=1,
        le=100,
    )
    issue_batch: int = setting(100, "Number of issues in one query.", ge=1, le=100)
    search_batch: int = setting(8, "Number of searches in one query.", ge=1, le=20)
    comments_inline: int = setting(
        30,
        "Number of comments to fetch together with their issue.",
        ge=1,
        le=100,
    )
    events_inline: int = setting(
        20,
        "Number of events to fetch together with their issue.",
        ge=1,
        le=100,
    )
    labels_inline: int = setting(
        10,
        "Number of labels to fetch together with their issue.",
        ge=1,
        le=100,
    )
    search_limit: int = setting(1000, "Maximum number of results of one search.", ge=1)

    timeout_s: float = setting(
        30.0,
        "Seconds to wait for a whole response; GitHub itself times out after 10.",
        gt=0,
    )
    attempts: int = setting(
        8,
        "Number of consecutive failures before a repository fails in this run.",
        ge=1,
    )
    first_attempts: int = setting(
        4,
        "Number of failures after which a server that never responded counts as unreachable.",
        ge=1,
    )
    backoff_s: float = setting(
        1.0,
        "Seconds to wait after the first failure; doubles, with jitter.",
        ge=0,
    )
    secondary_wait_s: float = setting(
        60.0,
        "Seconds to wait at a rate limit if the server requests no time; doubles.",
        ge=0,
    )
    max_wait_s: float = setting(
        3900.0,
        "Maximum number of seconds to wait; a longer wait ends the run, which can be resumed.",
        ge=0,
    )

    @field_validator("api_url")
    @classmethod
    def _normalized_root(cls, url: str) -> str:
        return read_root(url).url

    @property
    def graphql_address(self) -> Address:
        """The parent of `/graphql`; on GitHub Enterprise it is `/api`, not `/api/v3`."""
        root = read_root(self.api_url)
        return replace(root, path=re.sub("(?<=/api)/v3$", "", root.path))

    @property
    def graphql_url(self) -> str:
        """The URL for queries."""
        return f"{self.graphql_address.url}/graphql"


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
    """Always in one order, so that the same choice is the same setting."""
    if isinstance(value, str):
        value = Relation if value.strip() == "all" else between_commas(value)
    if not isinstance(value, Iterable):
        return value
    names = list(value)
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
