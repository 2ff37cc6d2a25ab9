"""Existing pairs as judges see them: grouped by first text, without labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path

import polars as pl

from llm_labeler.dataset.texts import tidy, why_unusable
from llm_labeler.records import Candidate, Text
from llm_labeler.settings import InputSettings
from pairkit.app.errors import DataError
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import LabelRules
from pairkit.dataset.reader import read_pairs
from pairkit.system.seeded import keyed_hash

PAIR = "pair_id"
GIVEN = "given_label"
_OWN = ("votes", "strategy", "reason", "contradicts", PAIR, GIVEN)  # columns that judging adds on any scale


@dataclass(frozen=True, slots=True)
class ExistingPairs:
    """The pairs of a dataset, each once a split."""

    name: str
    splits: Mapping[str, pl.DataFrame]
    about: Mapping[Text, tuple[Candidate, ...]]
    half: float
    dropped: Mapping[str, int]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the pairs and their labels, in their order."""
        digest = sha256()
        for split, rows in self.splits.items():
            for row in rows.select("text1", "text2", GIVEN).iter_rows():
                data = "\x1f".join((split, *map(str, row))).encode("utf-8", "surrogatepass")
                digest.update(b"%d:%s" % (len(data), data))
        return digest.hexdigest()


def read_existing_pairs(
    source: Source,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    settings: InputSettings,
    seed: int,
    added: tuple[str, ...] = (),
) -> ExistingPairs:
    """Read a dataset's pairs."""
    found = read_pairs(source, columns=columns, rules=rules)
    highest = max((float(rows["label"].max() or 0.0) for rows in found.splits.values()), default=0.0)  # type: ignore[arg-type]  # a number
    dropped: Counter[str] = Counter()
    splits: dict[str, pl.DataFrame] = {}
    left = settings.limit
    for split, rows in found.splits.items():
        renamed = _renamed(rows, (*_OWN, *added))
        reasons = _reasons(renamed, settings, left)
        dropped.update(filter(None, reasons))
        splits[split] = renamed.head(len(reasons)).filter(
            pl.Series([why is None for why in reasons], dtype=pl.Boolean)
        )
        left = None if left is None else left - splits[split].height
    if not any(rows.height for rows in splits.values()):
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
        raise DataError(
            f"holds no pairs to judge{f' ({why}; see the [input] settings)' if why else ''}",
            path=source_name(source),
        )
    splits = _drawn(splits, settings.draw, seed)
    name = source_name(source)
    name = Path(name).name if isinstance(source, str | Path) and Path(source).exists() else name
    return ExistingPairs(name, splits, _about(splits), max(highest, 1.0) / 2, +dropped)


def _reasons(rows: pl.DataFrame, settings: InputSettings, most: int | None) -> list[str | None]:
    """Why each row is not judged, as `label generate` says it of texts; up to the last of `most` usable."""
    found, seen = list[str | None](), set[str]()
    for one, other, pair in rows.select("text1", "text2", PAIR).iter_rows():
        if len(seen) == most:
            break
        why = (why_unusable(text, tidy(text), settings) for text in (one, other))
        found.append(next(filter(None, why), "repeated" if pair in seen else None))
        if found[-1] is None:
            seen.add(pair)
    return found


def _drawn(splits: dict[str, pl.DataFrame], count: int | None, seed: int) -> dict[str, pl.DataFrame]:
    """Some of the pairs of all splits, in their order."""
    if count is None:
        return splits
    everything = ((split, pair) for split, rows in splits.items() for pair in rows[PAIR])
    chosen = set(nsmallest(count, everything, key=lambda one: keyed_hash(seed, "draw", *one)))
    return {
        split: rows.filter(pl.Series([(split, pair) in chosen for pair in rows[PAIR]], dtype=pl.Boolean))
        for split, rows in splits.items()
    }


def _renamed(rows: pl.DataFrame, own: tuple[str, ...]) -> pl.DataFrame:
    """With the given label and the pair's id; a column that judging adds becomes `source_NAME`."""
    clash = {name: f"source_{name}" for name in own if name in rows.columns}
    rows = rows.drop([new for new in clash.values() if new in rows.columns]).rename(clash)
    ids = [
        Candidate(Text.of(one, 0).text_id, other, "positive", ()).candidate_id
        for one, other in rows.select("text1", "text2").iter_rows()
    ]
    return rows.rename({"label": GIVEN}).with_columns(pl.Series(PAIR, ids, pl.String))


def _about(splits: Mapping[str, pl.DataFrame]) -> dict[Text, tuple[Candidate, ...]]:
    found: dict[str, tuple[Text, dict[str, Candidate]]] = {}
    for rows in splits.values():
        for one, other in rows.select("text1", "text2").iter_rows():
            text = Text.of(one, 0)
            _, beside = found.setdefault(text.text_id, (text, {}))
            # Each pair is stored as a positive without a proposer; judges see neither.
            beside.setdefault(other, Candidate(text.text_id, other, "positive", ()))
    return {text: tuple(beside.values()) for text, beside in found.values()}
