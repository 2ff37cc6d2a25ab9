"""The stratified sample of a review, and the facts about each pair."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import polars as pl
from pydantic import BeforeValidator, Field

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import Settings, split_at_commas
from pairkit.base.system.folders import base_name
from pairkit.base.system.seeded import in_proportion, random_order
from pairkit.dataset.judgements import JudgedPair, ReviewSettings
from pairkit.dataset.records import (
    PAIR,
    QUERY_COLUMNS,
    RANK,
    PairDataset,
    all_texts,
    is_search,
    label_scale,
    unordered,
    with_provenance,
)
from pairkit.similarity.terms import common_words

_MIN_PER_STRATUM = 2
_SHARE = 0.1
# Pairs, at least, if the columns for strata are chosen automatically.
_MEAN_PER_STRATUM = 10
_RELATIONS = ("duplicate", "superseded", "related")
QUESTION = "Do both texts say the same?"
ISSUES = "Do both issues describe the same problem?"
SEARCH = "Does the second text answer the first, or ask the same?"
RESULTS = "Which results answer the query, or ask the same?"
FACTS = (
    "label",
    "evidence",
    "llm",
    "confidence",
    "judges",
    "relation",
    "source",
    "split",
)
"""Possible strata, in the order of preference."""
_SOURCES = ("repo", "project", "system", "source", "genre")
_CONFIDENCE_BANDS = (0.5, 0.7, 0.8, 0.9, 0.95)
_ORIGIN_COLUMNS = (
    "relation",
    "reason",
    "confidence",
    "url1",
    "url2",
    "repo",
    "repo2",
    "number1",
    "number2",
    "negative_kind",
    "polarity",
    "aggregation",
    "rule",
    "task",
    *QUERY_COLUMNS,
)
_AGREED = 0.8  # judges agree if at least this share of the votes is equal


class ReviewOptions(Settings):
    """The arguments of `pairkit.review` for a new review; None if not given."""

    n: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    strata: Annotated[tuple[str, ...] | None, BeforeValidator(split_at_commas)] = None
    each: Annotated[int, Field(ge=1)] | None = None
    grades: bool | None = None
    question: str | None = None


def draw_sample(
    dataset: PairDataset, options: ReviewOptions
) -> tuple[ReviewSettings, dict[str, int], list[JudgedPair]]:
    """The settings, strata and pairs of a review: a few of every stratum, the rest in proportion."""
    rows = _distinct_pairs(dataset)
    has_results = is_search(rows)
    top = label_scale(rows["label"])
    share = 1 if has_results else _SHARE
    size = options.n or math.ceil(share * rows.height)
    grades = options.grades
    if grades is None:
        grades = dataset.label_kind == "graded" and not has_results
    facts = [
        _facts_of(row, None if dataset.label_kind == "binary" else top)
        for row in rows.iter_rows(named=True)
    ]
    settings = ReviewSettings(
        dataset=base_name(dataset.source),
        digest=_hash(rows),
        pairs=rows.height,
        label_kind=dataset.label_kind,
        top=top,
        asked="grades" if grades else "labels",
        question=options.question or _question(rows, grades=grades),
        relations=_RELATIONS if "relation" in rows.columns else (),
        strata=_strata_facts(options.strata, facts, size),
        seed=42 if options.seed is None else options.seed,
        each=options.each,
        common=tuple(sorted(common_words(all_texts(rows).unique()))),
        is_search=has_results,
    )
    strata = [_stratum(known, settings.strata) for known in facts]
    sizes = dict(sorted(Counter(strata).items()))
    left = in_proportion(sizes, size, _MIN_PER_STRATUM)
    pairs = []
    texts = rows.select("text1", "text2").iter_rows()
    for number in random_order(settings.seed, "review", texts):
        stratum = strata[number]
        if left[stratum]:
            left[stratum] -= 1
            row = rows.row(number, named=True)
            pairs.append(_judged_pair(row, stratum, facts[number], settings))
    return settings, sizes, pairs


def _question(rows: pl.DataFrame, *, grades: bool) -> str:
    """What people are asked, unless the options have a question."""
    if is_search(rows):
        return SEARCH if grades else RESULTS
    return ISSUES if "relation" in rows.columns else QUESTION


def _judged_pair(
    row: Mapping[str, Any],
    stratum: str,
    facts: Mapping[str, str],
    settings: ReviewSettings,
) -> JudgedPair:
    text1 = row["text1"]
    text2 = row["text2"]
    return JudgedPair(
        pair_id=pair_id(text1, text2, ordered=settings.is_search),
        text1=text1,
        text2=text2,
        label=float(row["label"]),
        stratum=stratum,
        facts=facts,
        origin=_origin_of(row),
    )


def dataset_digest(dataset: PairDataset) -> str:
    """A hash of the distinct pairs with their labels, in any order."""
    return _hash(_distinct_pairs(dataset))


def _hash(rows: pl.DataFrame) -> str:
    pairs = rows.select("text1", "text2", "label").sort("text1", "text2")
    return hashlib.sha256(pairs.write_ndjson().encode()).hexdigest()


def pair_id(text1: str, text2: str, *, ordered: bool) -> str:
    """The id of two texts, in either order unless `ordered`."""
    low, high = (text1, text2) if ordered else sorted((text1, text2))
    content = f"{len(low)}\n{low}{high}".encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _distinct_pairs(dataset: PairDataset) -> pl.DataFrame:
    """Each distinct pair with its split and provenance."""
    if not len(dataset):
        raise DataError("has no pairs to review", path=dataset.source)
    rows = with_provenance(dataset).rows
    pair = ("text1", "text2") if is_search(rows) else PAIR
    keyed = rows.with_columns(unordered("text1", "text2"))
    return keyed.unique(pair, keep="first", maintain_order=True).drop(PAIR)


def _strata_facts(
    names: tuple[str, ...] | None, facts: Sequence[Mapping[str, str]], size: int
) -> tuple[str, ...]:
    """The facts that define strata: these names, or the first for which the sample is large enough."""
    if names is not None:
        for name in names:
            if name not in FACTS:
                raise ConfigError(
                    f"strata = {name}: expected some of {', '.join(FACTS)}"
                )
            if not any(name in known for known in facts):
                raise ConfigError(f"strata = {name}: no pair has it; leave it out")
        return names
    chosen = tuple[str, ...]()
    strata = 1
    for name in FACTS:
        more = (*chosen, name)
        number = len({_stratum(known, more) for known in facts})
        if strata < number <= size / _MEAN_PER_STRATUM:
            chosen = more
            strata = number
    return chosen


def _stratum(facts: Mapping[str, str], by: Sequence[str]) -> str:
    return ", ".join(f"{name} {facts[name]}" for name in by if name in facts) or "all"


def _facts_of(row: Mapping[str, Any], top_score: float | None) -> dict[str, str]:
    """The known facts about a row, by the names of `FACTS`; labels 0 and 1 have no top score."""
    label = row["label"]
    evidence = (row.get("evidence") or {}).get("kind")
    if not evidence and row.get("negative_kind"):
        evidence = f"{row['negative_kind']} negative"
    values = [row.get(name) for name in _SOURCES]
    sources = [value for value in values if isinstance(value, str)]
    known = {
        "label": f"grade {round(5 * label / top_score)}" if top_score else label,
        "evidence": evidence,
        "llm": _llm_names(row.get("llms")),
        "confidence": _band(row.get("confidence")),
        "judges": _judges(_votes(row)),
        "relation": row.get("relation"),
        "source": sources[0] if sources else None,
        "split": row["split"],
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _votes(row: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """The votes of judges as `label judge` writes them; others have the same name for other columns."""
    votes = row.get("votes")
    if not isinstance(votes, list):
        return None
    are_known = all(
        isinstance(vote, dict) and {"judge", "vote"} <= vote.keys() for vote in votes
    )
    return votes if are_known else None


def _judges(votes: Sequence[Mapping[str, str]] | None) -> str | None:
    """Whether the judges of a pair agree."""
    if votes is None:
        return None
    answers = [vote["vote"] for vote in votes]
    decided = [vote for vote in answers if vote != "unsure"]
    if not decided:
        return "judges unsure" if answers else "not judged"
    majority = max(map(decided.count, decided))
    return "judges agree" if majority / len(answers) >= _AGREED else "judges differ"


def _band(confidence: object) -> str | None:
    if not isinstance(confidence, float):
        return None
    above = [bound for bound in _CONFIDENCE_BANDS if confidence >= bound]
    return f"from {above[-1]:g} on" if above else f"below {_CONFIDENCE_BANDS[0]:g}"


def _llm_names(llms: object) -> str | None:
    if isinstance(llms, list):
        return " + ".join(sorted(map(str, llms))) or None
    return llms if isinstance(llms, str) and llms else None


def _origin_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The provenance of a row, shown after it was judged, as texts."""
    origin = {}
    for name, value in (row.get("evidence") or {}).items():
        if value is not None:
            origin[f"evidence {name}"] = str(value)
    for name in _ORIGIN_COLUMNS:
        if row.get(name) is not None:
            origin[name] = str(row[name])
    origin |= {name: str(row[name] or "") for name in row if name.startswith(RANK)}
    if llms := _llm_names(row.get("llms")):
        origin["llms"] = llms
    if votes := _votes(row):
        origin["votes"] = ", ".join(
            f"{vote['judge']}: {vote['vote']}" for vote in votes
        )
    return origin
