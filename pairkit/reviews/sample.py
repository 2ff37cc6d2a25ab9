"""Which pairs people are shown, some of every stratum; and what is known of each pair."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.settings import Settings
from pairkit.dataset.judgements import JudgedPair, ReviewSettings
from pairkit.dataset.records import PAIR, PairDataset, unordered, with_provenance
from pairkit.similarity.measures import common_words
from pairkit.system.folders import own_name
from pairkit.system.seeded import drawn, in_proportion, keyed_hash

_LEAST = 2  # pairs of a stratum, as far as there are so many
_SHARE = 0.1
_PLACES = 10  # of the sample, for each stratum, as long as nobody says what strata are to differ in
_RELATIONS = ("duplicate", "superseded", "related")
QUESTION = "Do both texts say the same?"
ISSUES = "Do both issues describe the same problem?"
FACTS = ("label", "evidence", "llm", "confidence", "judges", "relation", "source", "split")
"""Their names; the first are the first by which a sample is divided, as far as it is large enough."""
_SOURCES = ("repo", "project", "system", "source", "genre")
_BANDS = (0.5, 0.7, 0.8, 0.9, 0.95)  # of confidence
_TOLD = (
    *("relation", "reason", "confidence", "url1", "url2", "repo", "number1", "number2", "negative_kind"),
    *("polarity", "strategy", "task"),
)
_AGREED = 0.8  # the share of the votes that says the same, from which on judges count as agreed


class Wanted(Settings):
    """What was asked of a new review; None: not given. See `pairkit.review`."""

    n: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    strata: tuple[str, ...] | None = None
    each: Annotated[int, Field(ge=1)] | None = None
    grades: bool | None = None
    question: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """What a review begins with."""

    settings: ReviewSettings
    strata: Mapping[str, int]
    pairs: Sequence[JudgedPair]


def draw_sample(dataset: PairDataset, wanted: Wanted) -> ReviewSample:
    """Draw the pairs of a new review: some of every stratum, the rest by its size."""
    rows = _once(dataset)
    top = _top(dataset)
    size = sample_size(wanted, rows.height)
    seed = 42 if wanted.seed is None else wanted.seed
    facts = [facts_of(row, top=top) for row in rows.iter_rows(named=True)]
    by = _by(wanted.strata, facts, size)
    strata = pl.Series("stratum of a review", [_stratum(known, by) for known in facts], pl.String)
    keys = [keyed_hash(seed, "review", *texts) for texts in rows.select("text1", "text2").iter_rows()]
    table = pl.DataFrame(
        {"row": range(rows.height), "stratum": strata, "key": keys}, schema_overrides={"key": pl.UInt64}
    )
    sizes = dict(sorted(Counter(strata).items()))
    chosen = drawn(table, in_proportion(sizes, size, _LEAST), stratum="stratum", key="key")
    pairs = []
    for number in chosen["row"].to_list():
        row = rows.row(number, named=True)
        one, other, label = row["text1"], row["text2"], float(row["label"])
        known = (strata[number], facts[number], origin_of(row))
        pairs.append(JudgedPair(pair_id(one, other), one, other, label, *known))
    return ReviewSample(_settings(dataset, rows, wanted, top=top, by=by, seed=seed), sizes, pairs)


def sample_size(wanted: Wanted, pairs: int) -> int:
    """How many of so many pairs are asked for."""
    return wanted.n or math.ceil(_SHARE * pairs)


def dataset_digest(dataset: PairDataset) -> str:
    """A digest of a dataset's different pairs with their labels, wherever they stand."""
    return _digest(_once(dataset))


def _digest(rows: pl.DataFrame) -> str:
    told = rows.select("text1", "text2", "label").sort("text1", "text2").write_ndjson()
    return hashlib.sha256(told.encode()).hexdigest()


def pair_id(one: str, other: str) -> str:
    """Of two texts, whichever comes first."""
    low, high = sorted((one, other))
    return hashlib.blake2b(f"{len(low)}\n{low}{high}".encode(), digest_size=16).hexdigest()


def _once(dataset: PairDataset) -> pl.DataFrame:
    """Each pair once, with its split and what is known of it."""
    if not len(dataset):
        raise DataError("no pairs, so there is nothing to review", path=dataset.source)
    rows = with_provenance(dataset).rows
    return (
        rows.with_columns(unordered("text1", "text2"))
        .unique(PAIR, keep="first", maintain_order=True)
        .drop(PAIR)
    )


def _top(dataset: PairDataset) -> float:
    if dataset.label_kind == "binary":
        return 1.0
    highest = max(float(frame["label"].to_numpy().max()) for frame in dataset.splits.values() if frame.height)
    return 1.0 if highest <= 1 else 5.0


def _by(wanted: Sequence[str] | None, facts: Sequence[Mapping[str, str]], size: int) -> tuple[str, ...]:
    """What strata differ in: as asked, or the first facts, as long as each stratum has some places."""
    if wanted is not None:
        if strange := [name for name in wanted if name not in FACTS]:
            raise ConfigError(f"strata = {strange[0]}: expected some of {', '.join(FACTS)}")
        return tuple(wanted)
    chosen, strata = tuple[str, ...](), 1
    for name in FACTS:
        longer = (*chosen, name)
        number = len({_stratum(known, longer) for known in facts})
        if strata < number <= size / _PLACES:
            chosen, strata = longer, number
    return chosen


def _stratum(facts: Mapping[str, str], by: Sequence[str]) -> str:
    return ", ".join(f"{name} {facts[name]}" for name in by if name in facts) or "all"


def _settings(
    dataset: PairDataset, rows: pl.DataFrame, wanted: Wanted, *, top: float, by: tuple[str, ...], seed: int
) -> ReviewSettings:
    has_relations = "relation" in rows.columns
    graded = dataset.label_kind == "graded" if wanted.grades is None else wanted.grades
    texts = pl.concat([rows["text1"], rows["text2"].alias("text1")]).unique()
    return ReviewSettings(
        dataset=own_name(dataset.source),
        digest=_digest(rows),
        pairs=rows.height,
        label_kind=dataset.label_kind,
        top=top,
        asked="grades" if graded else "labels",
        question=wanted.question or (ISSUES if has_relations else QUESTION),
        relations=_RELATIONS if has_relations else (),
        strata=by,
        seed=seed,
        each=wanted.each,
        common=tuple(sorted(common_words(texts))),
    )


def facts_of(row: Mapping[str, Any], *, top: float) -> dict[str, str]:
    """What is known of a row, by the names of `FACTS`; what the dataset does not tell is left out."""
    evidence, votes = row.get("evidence"), row.get("votes")
    kind = evidence.get("kind") if isinstance(evidence, Mapping) else None
    known = {
        "label": label_band(row["label"], top),
        "evidence": kind or (f"{row['negative_kind']} negative" if row.get("negative_kind") else None),
        "llm": _names(row.get("llms")),
        "confidence": _band(row.get("confidence")),
        "judges": judges_agree(votes) if isinstance(votes, list) else None,
        "relation": row.get("relation"),
        "source": next((row[name] for name in _SOURCES if isinstance(row.get(name), str)), None),
        "split": row["split"],
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def judges_agree(votes: object) -> str:
    """How far judges agree about a pair, by its `votes`: a list of structures with the field `vote`."""
    said = [vote["vote"] for vote in votes] if isinstance(votes, Sequence) else []
    heard = [vote for vote in said if vote != "unsure"]
    if not heard:
        return "judges unsure" if said else "not judged"
    return "judges agree" if max(map(heard.count, heard)) / len(said) >= _AGREED else "judges differ"


def label_band(label: float, top: float) -> str:
    """A label as a stratum: 0 or 1, or of scores the whole grade, of 0 to 5, that is nearest."""
    return f"{label:g}" if label in (0, 1) and top == 1 else f"grade {round(5 * label / top)}"


def _band(confidence: object) -> str | None:
    if not isinstance(confidence, float):
        return None
    above = [bound for bound in _BANDS if confidence >= bound]
    return f"from {above[-1]:g} on" if above else f"below {_BANDS[0]:g}"


def _names(llms: object) -> str | None:
    if isinstance(llms, list):
        return " + ".join(sorted(map(str, llms))) or None
    return llms if isinstance(llms, str) and llms else None


def origin_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Where a row is from, to be shown once it was judged; links among it are no more than texts here."""
    told: dict[str, str] = {}
    if isinstance(evidence := row.get("evidence"), Mapping):
        told |= {f"evidence {name}": str(value) for name, value in evidence.items() if value is not None}
    told |= {name: str(row[name]) for name in _TOLD if row.get(name) is not None}
    if llms := _names(row.get("llms")):
        told["llms"] = llms
    if isinstance(votes := row.get("votes"), list):
        told["votes"] = ", ".join(f"{vote['judge']}: {vote['vote']}" for vote in votes)
    return told
