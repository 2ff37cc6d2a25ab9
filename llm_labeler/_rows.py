"""The pairs of a run as rows, collected text by text."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from llm_labeler._records import POLARITIES, Pair, Text
from pairkit.keyed import keyed_hash
from pairkit.records import SPLITS

Frames = dict[str, dict[str, pl.DataFrame]]  # configuration to split to rows

_NAMES = pl.List(pl.String)
_VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))

V = TypeVar("V", bound=Hashable)


class _Coded(Generic[V]):
    """A column of few distinct values: each is kept once, and a number for every row."""

    def __init__(self) -> None:
        self.values: dict[V, int] = {}
        self._codes = array("L")

    def append(self, value: V) -> None:
        self._codes.append(self.values.setdefault(value, len(self.values)))

    def column(self, values: Sequence[Any], dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
        """The rows, given what stands for each distinct value."""
        return pl.Series(values, dtype=dtype).gather(pl.Series(np.array(self._codes, dtype=np.uint32)))


class DatasetRows:
    """The pairs of a run, collected text by text; columns rather than objects, as there may be millions."""

    def __init__(self, strategy: str, seed: int, *, triplets: bool = False) -> None:
        """Nothing yet.

        Args:
            strategy: What the rows say of how they came to their labels.
            seed: Decides the order of rows.
            triplets: Whether a text without both a positive and a negative gives no rows; see `frames`.
        """
        self.strategy, self._seed, self.triplets = strategy, seed, triplets
        self.dropped: Counter[str] = Counter()  # why pairs that were added are no rows
        self._texts: _Coded[Text] = _Coded()
        self._candidates: list[str] = []
        self._polarities: _Coded[str] = _Coded()
        self._labels = array("d")
        self._llms: _Coded[tuple[str, ...]] = _Coded()
        self._prompts: _Coded[tuple[str, ...]] = _Coded()
        self._votes: _Coded[tuple[tuple[str, str], ...]] = _Coded()
        self._changes: _Coded[str | None] = _Coded()

    def __len__(self) -> int:
        return len(self._candidates)

    def add(self, text: Text, pairs: Sequence[Pair]) -> None:
        """Take in the pairs of one text, each text once.

        A pair that the ensemble turned down is counted by its reason, a candidate that came before as
        `repeated_pair`; neither becomes a row. Of triplets, pairs that have nothing to stand beside are
        counted as `no_negative` or `no_positive`.
        """
        seen: set[str] = set()
        kept: list[Pair] = []
        for pair in pairs:
            candidate = pair.candidate
            if reason := pair.reason or ("repeated_pair" if candidate.candidate in seen else None):
                self.dropped[reason] += 1
                continue
            seen.add(candidate.candidate)
            kept.append(pair)
        if self.triplets and len({pair.polarity for pair in kept}) == 1:
            self.dropped["no_negative" if kept[0].polarity == "positive" else "no_positive"] += len(kept)
            return
        for pair in kept:
            candidate = pair.candidate
            self._texts.append(text)
            self._candidates.append(candidate.candidate)
            self._polarities.append(pair.polarity)
            self._labels.append(pair.label)
            self._llms.append(candidate.llms)
            self._prompts.append(candidate.prompt_hashes)
            self._votes.append(tuple((vote.judge, vote.vote) for vote in pair.votes))
            self._changes.append(candidate.change)

    def frames(self, split_of: Mapping[str, str], *, graded: bool) -> Frames:
        """Configuration to split to rows; a configuration without any row is left out.

        The seed decides each row's place by what the row says: neither label, text nor LLM makes a run of
        rows, so batches are mixed even if nobody shuffles, and added texts leave the others' order alone.
        In `triplet` each positive of a text stands with one of its negatives, and each negative with one of
        its positives; the fewer take turns. So no text of a pair is missing, and every row is whole for those
        who read one negative a row.

        Args:
            split_of: text_id to split.
            graded: Make labels 32-bit floats rather than whole numbers, whatever they are; so they are anyway
                where one is neither 0 nor 1.
        """
        rows = self._rows(split_of, graded=graded)
        found: Frames = {"default": {}, "positive": {}, "triplet": {}}
        for split in SPLITS:
            part = rows.filter(pl.col("split") == split).drop("split")
            found["default"][split] = part
            found["positive"][split] = part.filter(pl.col("polarity") == "positive").select(
                anchor="text1", positive="text2"
            )
            found["triplet"][split] = _told(part, self.strategy) if self.triplets else _triplets(part)
        return {config: splits for config, splits in found.items() if any(f.height for f in splits.values())}

    def _kinds(self) -> dict[str, pl.Series]:
        """Of triplets, what each negative changes."""
        if not self.triplets:
            return {}
        return {"negative_kind": self._changes.column([*self._changes.values], pl.String)}

    def _rows(self, split_of: Mapping[str, str], *, graded: bool) -> pl.DataFrame:
        texts = [*self._texts.values]
        labels = np.array(self._labels, dtype=np.float64)
        graded = graded or bool(((labels != 0) & (labels != 1)).any())
        ids = self._texts.column([text.text_id for text in texts], pl.String)
        votes = [[{"judge": j, "vote": v} for j, v in votes] for votes in self._votes.values]
        rows = pl.DataFrame(
            {
                "text1": self._texts.column([text.text for text in texts], pl.String),
                "text2": pl.Series(self._candidates, dtype=pl.String),
                "label": pl.Series(labels).cast(pl.Float32 if graded else pl.Int64),
                "text_id": ids,
                "polarity": self._polarities.column([*self._polarities.values], pl.String),
                "llms": self._llms.column([*map(list, self._llms.values)], _NAMES),
                "prompt_hashes": self._prompts.column([*map(list, self._prompts.values)], _NAMES),
                "votes": self._votes.column(votes, _VOTES),
                "strategy": pl.repeat(self.strategy, len(self), dtype=pl.String, eager=True),
                **self._kinds(),
                "split": self._texts.column([split_of[text.text_id] for text in texts], pl.String),
            }
        )
        about = zip(ids, self._candidates, strict=True)
        keys = np.fromiter((keyed_hash(self._seed, "row", *row) for row in about), np.uint64, len(self))
        return rows[np.argsort(keys, kind="stable")]


def _triplets(rows: pl.DataFrame) -> pl.DataFrame:
    """Triplets of each text: as many as it has positives or negatives, whichever are more, in their order."""
    return _matched(rows).select("anchor", "positive", "negative")


def _told(rows: pl.DataFrame, strategy: str) -> pl.DataFrame:
    """The same with what is known of each: the kind of its negative, and where both texts come from."""
    both = {
        name: pl.concat_list(f"{name}_positive", f"{name}_negative").list.unique().list.sort()
        for name in ("llms", "prompt_hashes")
    }
    matched = _matched(rows, "negative_kind", *both)
    return matched.select(
        *("anchor", "positive", "negative"),
        pl.col("negative_kind_negative").alias("negative_kind"),
        "text_id",
        **both,
        strategy=pl.lit(strategy),
    )


def _matched(rows: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Each positive of a text beside one of its negatives and the other way round; the fewer take turns.

    Columns anchor, positive, negative, text_id, and NAME_positive, NAME_negative for each of `more`.
    """
    numbered = rows.select(
        *("text1", "text2", "text_id", "polarity", *more),
        turn=pl.int_range(pl.len()).over("text_id", "polarity"),
    )
    sides = {polarity: numbered.filter(pl.col("polarity") == polarity) for polarity in POLARITIES}
    found = numbered
    for polarity, own in sides.items():  # a text that lacks either has no triplet
        counts = own.group_by("text_id").agg(pl.len().cast(pl.Int64).alias(f"{polarity}s"))
        found = found.join(counts, on="text_id", maintain_order="left")
    leads = pl.when(pl.col("positives") >= pl.col("negatives")).then(pl.lit("positive"))
    found = found.filter(pl.col("polarity") == leads.otherwise(pl.lit("negative")))
    for polarity, own in sides.items():
        told = (pl.col(name).alias(f"{name}_{polarity}") for name in more)
        texts = own.select("text_id", pl.col("turn").alias("at"), pl.col("text2").alias(polarity), *told)
        found = found.with_columns(at=pl.col("turn") % pl.col(f"{polarity}s"))
        found = found.join(texts, on=("text_id", "at"), maintain_order="left")
    return found.rename({"text1": "anchor"})
