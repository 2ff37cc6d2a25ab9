"""Rows of a dataset as anchors, positives and candidates, each text once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from aoe_train.searching.mining.known_positives import KnownPositives, Places
from pairkit.app.errors import DataError
from pairkit.dataset.in_memory import source_name
from pairkit.dataset.reader import read_pairs, read_rows
from pairkit.dataset.records import with_provenance
from pairkit.system.seeded import keyed_unit

if TYPE_CHECKING:
    from aoe_train.searching.mining.settings import MineSettings
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import LabelRules
    from pairkit.dataset.records import PairDataset

REPEATED, NOT_POSITIVE = "repeated", "not_positive"


@dataclass(frozen=True)
class MiningSplit:
    """A split, by the places of its texts."""

    anchors: Places
    positives: Places
    candidates: Places
    negatives: frozenset[tuple[int, int]]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MiningDataset:
    """All splits of a dataset."""

    texts: list[str]
    known: KnownPositives
    parts: Mapping[str, MiningSplit]

    def digest(self) -> str:
        """Tells other material from this."""
        found = hashlib.sha256()
        for text in self.texts:
            found.update(blake2b(text.encode("utf-8", "replace")).digest())
        found.update(self.known.family.tobytes())
        for name, part in self.parts.items():
            found.update(f"{name} {len(part.anchors)} {sorted(part.negatives)}".encode())
            for places in (part.anchors, part.positives, part.candidates):
                found.update(places.tobytes())
        return found.hexdigest()


def read_mining_dataset(
    source: Source,
    settings: MineSettings,
    *,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules,
    split: str | None = None,
    corpus: Source | None = None,
    text_column: str | None = None,
) -> MiningDataset:
    """Read what is to be mined for, and from.

    Without a corpus each split's candidates are its own texts: with labels both texts of each pair, else
    those that stand second, unless `settings.candidates` says otherwise. The texts of a corpus are dealt to
    the splits, near-identical ones to the same, in proportion to their rows; those that stand in a split,
    or are near-identical to one that does, belong to that split.
    """
    pairs = with_provenance(read_pairs(source, columns=columns, split=split, rules=rules))
    if pairs.label_kind != "binary":
        raise DataError(
            "its labels are scores, so that nobody knows which pairs are positives; keep the rows with high"
            " scores in a file of anchor and positive",
            path=pairs.source,
        )
    texts = _TextNumbers()
    rows = {name: _rows(frame, texts) for name, frame in pairs.splits.items()}
    own = len(texts.places)
    further = [] if corpus is None else _corpus(corpus, texts, text_column)
    positives = [
        pair for one, other, label in rows.values() for pair in _pairs_labelled(one, other, label, 1)
    ]
    if not positives:
        raise DataError("has no positive to mine negatives for", path=pairs.source)
    listed = list(texts.places)
    known = KnownPositives(
        listed,
        positives,
        _clusters(pairs, rows) if settings.transitive else (),
        threshold=settings.threshold,
        transitive=settings.transitive,
    )
    everyone = (settings.candidates or ("positives" if pairs.labels is None else "all")) == "all"
    candidates = {
        name: np.unique(np.concatenate([one, other] if everyone else [other]))
        for name, (one, other, _) in rows.items()
    }
    if corpus is not None:
        candidates = _corpus_by_split(further, own, known, rows, settings.seed)
    parts = {name: _part(one, other, label, candidates[name]) for name, (one, other, label) in rows.items()}
    return MiningDataset(listed, known, parts)


class _TextNumbers:
    """Distinct texts, numbered as they come."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def numbered(self, texts: Iterable[str]) -> Places:
        number = self.places.setdefault
        return np.fromiter((number(text, len(self.places)) for text in texts), np.int64)


_Rows = tuple[Places, Places, Places]


def _rows(frame: pl.DataFrame, texts: _TextNumbers) -> _Rows:
    return (
        texts.numbered(frame["text1"]),
        texts.numbered(frame["text2"]),
        frame["label"].cast(pl.Int64).to_numpy(),
    )


def _corpus(source: Source, texts: _TextNumbers, column: str | None) -> list[int]:
    rows = read_rows(source, columns=None if column is None else {"text": column})
    found: list[int] = []
    for frame in rows.splits.values():
        if frame.columns != ["text"]:
            raise DataError(
                f"holds {', '.join(frame.columns)}; expected single texts: give a text file, or the column by"
                " --text-column",
                path=source_name(source),
            )
        found += texts.numbered(frame["text"]).tolist()
    return found


def _pairs_labelled(one: Places, other: Places, label: Places, wanted: int) -> Iterator[tuple[int, int]]:
    chosen = label == wanted
    return zip(one[chosen].tolist(), other[chosen].tolist(), strict=True)


def _clusters(pairs: PairDataset, rows: Mapping[str, _Rows]) -> Iterator[tuple[int, int]]:
    """Texts of one cluster; what a cluster says of a pair that is no positive is not believed."""
    first: dict[str, int] = {}
    for name, frame in pairs.splits.items():
        if "cluster" not in frame.columns:
            continue
        one, _, label = rows[name]
        for text, is_positive, cluster in zip(
            one.tolist(), label.tolist(), frame["cluster"].to_list(), strict=True
        ):
            if is_positive and cluster:
                yield first.setdefault(cluster, text), text


def _corpus_by_split(
    corpus: list[int], own: int, known: KnownPositives, rows: Mapping[str, _Rows], seed: int
) -> dict[str, Places]:
    """The texts of a corpus by the split that may use them."""
    home = {
        unit: name
        for name, (one, other, _) in rows.items()
        for unit in known.unit[np.concatenate([one, other])].tolist()
    }
    names = list(rows)
    shares = np.cumsum([len(rows[name][0]) for name in names], dtype=np.float64)
    dealt: dict[str, list[int]] = {name: [] for name in names}
    for text in dict.fromkeys(corpus):
        unit = int(known.unit[text])
        if unit not in home:
            drawn = keyed_unit(seed, "split", unit - own) * shares[-1]
            home[unit] = names[int(np.searchsorted(shares, drawn, side="right"))]
        dealt[home[unit]].append(text)
    return {name: np.array(sorted(found), np.int64) for name, found in dealt.items()}


def _part(one: Places, other: Places, label: Places, candidates: Places) -> MiningSplit:
    rows = list(_pairs_labelled(one, other, label, 1))
    distinct = list(dict.fromkeys(rows))
    negatives = frozenset((min(pair), max(pair)) for pair in _pairs_labelled(one, other, label, 0))
    counts = Counter({NOT_POSITIVE: len(label) - len(rows), REPEATED: len(rows) - len(distinct)})
    places = np.array(distinct, np.int64).reshape(-1, 2)
    return MiningSplit(
        places[:, 0], places[:, 1], candidates, negatives, {k: n for k, n in counts.items() if n}
    )
