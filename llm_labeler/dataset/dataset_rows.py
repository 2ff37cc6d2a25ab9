"""The candidates of a run, and the rows of its dataset by configuration and split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from llm_labeler.records import POLARITIES, LabelledPair, Polarity, Text
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.records import SPLITS
from pairkit.dataset.table_files import write_parquet

NAMES = pl.List(pl.String)
VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
_BATCH = 20_000  # candidates that are collected before they become a table

_CANDIDATES: dict[str, Any] = {
    "text": pl.UInt32,  # index of the text
    "candidate": pl.String,
    "proposed": pl.String,  # the polarity that it was proposed as
    "llms": NAMES,
    "votes": VOTES,
    "label": pl.Float64,
    "reason": pl.String,  # why it is not a pair; null: it is one
    "change": pl.String,  # kind of a hard negative
    "prompts": NAMES,
    "polarity": pl.String,
    "key": pl.UInt64,  # sort key of the rows of a split; null: not a row
}
# The sort key and the id of a triplet, and the indices of its candidates.
_TRIPLETS = {
    "key": pl.UInt64,
    "id": pl.UInt32,
    "positive": pl.UInt32,
    "negative": pl.UInt32,
}


# The rows of a split are sorted by hash, which mixes labels and texts.
_ORDER = ("split", "key", "id")


class _Row(NamedTuple):
    """A pair that becomes a row of the dataset."""

    key: int  # rows are sorted by it
    number: int  # index among the pairs of its text
    polarity: Polarity


class DatasetRows:
    """The candidates of a run."""

    def __init__(self, aggregation: str, seed: int, *, triplets: bool) -> None:
        self.aggregation = aggregation
        self._seed = seed
        self.triplets = triplets
        self.texts: list[Text] = []
        self.candidates = 0
        self.rows = 0
        self.dropped: Counter[str] = Counter()  # pairs that are not rows, by reason
        self.triplet_rows: list[dict[str, int]] = []  # see _TRIPLETS
        self._pending: list[dict[str, Any]] = []
        self._tables = [pl.DataFrame(schema=_CANDIDATES)]

    def add(self, text: Text, pairs: Sequence[LabelledPair]) -> None:
        """Add all pairs of one text."""
        rows = self._sorted_rows(text, pairs)
        self._add_triplets(rows)
        keys = {row.number: row.key for row in rows}
        for number, pair in enumerate(pairs):
            candidate = pair.candidate
            self._pending.append(
                {
                    "text": len(self.texts),
                    "candidate": candidate.candidate,
                    "proposed": candidate.polarity,
                    "llms": candidate.llms,
                    "votes": [
                        {"judge": vote.judge, "vote": vote.vote} for vote in pair.votes
                    ],
                    "label": pair.label,
                    "reason": pair.reason,
                    "change": candidate.change,
                    "prompts": candidate.prompt_hashes,
                    "polarity": pair.polarity,
                    "key": keys.get(number),
                }
            )
        self.texts.append(text)
        self.candidates += len(pairs)
        self.rows += len(rows)
        if len(self._pending) >= _BATCH:
            self._flush()

    def table(self) -> pl.DataFrame:
        """All candidates, in the order in which they were added."""
        self._flush()
        self._tables = [pl.concat(self._tables)]
        return self._tables[0]

    def sentences(self, texts: Sequence[Text]) -> pl.Series:
        """The texts, followed by all candidates that the aggregation kept."""
        sources = pl.Series([text.text for text in texts], dtype=pl.String)
        kept = self.table().filter(pl.col("reason").is_null())
        return pl.concat([sources, kept["candidate"].alias("")])

    def write_candidates(self, path: Path) -> None:
        """Write all candidates with the reasons of their rejection."""
        table = self.table()
        ids, texts = self.texts_at(table["text"])
        written = table.select(
            ids,
            texts.alias("text"),
            "candidate",
            pl.col("proposed").alias("polarity"),
            "llms",
            "votes",
            "label",
            "reason",
            "change",
        )
        if not self.triplets:
            written = written.drop("change")
        write_parquet(path, written, private=True)

    def texts_at(self, indices: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The ids and the texts at these indices."""
        ids = pl.Series("text_id", [text.text_id for text in self.texts], pl.String)
        texts = pl.Series("text1", [text.text for text in self.texts], pl.String)
        return ids.gather(indices), texts.gather(indices)

    def _sorted_rows(self, text: Text, pairs: Sequence[LabelledPair]) -> list[_Row]:
        """The pairs that become rows, sorted by key."""
        seen = set()
        rows = []
        for number, pair in enumerate(pairs):
            sentence = pair.candidate.candidate
            reason = pair.reason
            if reason is None and sentence in seen:
                reason = "repeated_pair"
            if reason is not None:
                self.dropped[reason] += 1
                continue
            seen.add(sentence)
            key = keyed_hash(self._seed, "row", text.text_id, sentence)
            rows.append(_Row(key, number, pair.polarity))
        polarities = {row.polarity for row in rows}
        if self.triplets and len(polarities) == 1:
            missing = "no_negative" if "positive" in polarities else "no_positive"
            self.dropped[missing] += len(rows)
            return []
        return sorted(rows)

    def _add_triplets(self, rows: Sequence[_Row]) -> None:
        """Make a triplet for each row of the more frequent polarity; rows of the other repeat in turn."""
        positives = [row for row in rows if row.polarity == "positive"]
        negatives = [row for row in rows if row.polarity == "negative"]
        if not positives or not negatives:
            return
        first = self.candidates  # index of this text's first candidate
        frequent = positives if len(positives) >= len(negatives) else negatives
        for turn, row in enumerate(frequent):
            positive = positives[turn % len(positives)]
            negative = negatives[turn % len(negatives)]
            self.triplet_rows.append(
                {
                    "key": row.key,
                    "id": first + row.number,
                    "positive": first + positive.number,
                    "negative": first + negative.number,
                }
            )

    def _flush(self) -> None:
        self._tables.append(pl.DataFrame(self._pending, schema=_CANDIDATES))
        self._pending = []


class DatasetSplits:
    """The rows of the dataset by configuration and split."""

    def __init__(
        self, rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool
    ) -> None:
        self._source = rows
        split_numbers = [SPLITS.index(split_of[text.text_id]) for text in rows.texts]
        splits = pl.Series(split_numbers, dtype=pl.UInt8)
        candidates = rows.table().with_row_index("id")
        candidates = candidates.with_columns(split=splits.gather(candidates["text"]))
        self._rows = candidates.filter(pl.col("key").is_not_null()).sort(_ORDER)
        self.graded = graded or not self._rows["label"].is_in([0.0, 1.0]).all()

        triplets = pl.DataFrame(rows.triplet_rows, schema=_TRIPLETS)
        split_of_triplet = candidates["split"].gather(triplets["id"])
        triplets = triplets.with_columns(split=split_of_triplet).sort(_ORDER)
        self._triplet_splits = triplets["split"]
        # The candidates of each triplet.
        self._positives = candidates[triplets["positive"]]
        self._negatives = candidates[triplets["negative"]]

        configs = {}
        if not rows.triplets:
            configs["default"] = self._default_config()
            configs["positive"] = self._positive_config()
        configs["triplet"] = self._triplet_config()
        self.frames = {
            name: _by_split(frame) for name, frame in configs.items() if frame.height
        }

    def counts(self) -> dict[str, Any]:
        """Counts by split and polarity, and by LLM; a pair is counted for each LLM that proposed it."""
        by_llm: dict[str, dict[str, int]] = {}
        for llms, polarity in self._rows.select("llms", "polarity").iter_rows():
            for name in llms:
                by_llm.setdefault(name, dict.fromkeys(POLARITIES, 0))[polarity] += 1
        counts: dict[str, Any] = {
            "splits": {
                split: self._counts_of(number) for number, split in enumerate(SPLITS)
            },
            "llms": dict(sorted(by_llm.items())),
        }
        if self._source.triplets:
            kinds = self._negatives["change"].fill_null("unknown")
            changes = Counter(kinds.to_list())
            counts["negative_kinds"] = dict(sorted(changes.items()))
        return counts

    def _counts_of(self, split: int) -> dict[str, int]:
        rows = self._rows.filter(split=split)
        by_polarity = Counter(rows["polarity"].to_list())
        return {
            "texts": rows["text"].n_unique(),
            **{polarity: by_polarity[polarity] for polarity in POLARITIES},
            "total": rows.height,
            "triplets": int((self._triplet_splits == split).sum()),
        }

    def _default_config(self) -> pl.DataFrame:
        rows = self._rows
        ids, texts = self._source.texts_at(rows["text"])
        return rows.select(
            texts,
            pl.col("candidate").alias("text2"),
            pl.col("label").cast(pl.Float32 if self.graded else pl.Int64),
            ids,
            "polarity",
            "llms",
            pl.col("prompts").alias("prompt_hashes"),
            "votes",
            pl.lit(self._source.aggregation).alias("aggregation"),
            "split",
        )

    def _positive_config(self) -> pl.DataFrame:
        rows = self._rows.filter(polarity="positive")
        _, texts = self._source.texts_at(rows["text"])
        return rows.select(
            texts.alias("anchor"), pl.col("candidate").alias("positive"), "split"
        )

    def _triplet_config(self) -> pl.DataFrame:
        """The triplets, in tasks that make only triplets with their provenance."""
        positives = self._positives
        negatives = self._negatives
        ids, texts = self._source.texts_at(positives["text"])
        triplets = pl.DataFrame(
            [
                texts.alias("anchor"),
                positives["candidate"].alias("positive"),
                negatives["candidate"].alias("negative"),
                self._triplet_splits,
            ]
        )
        if not self._source.triplets:
            return triplets

        def merged(column: str) -> pl.Expr:
            names = pl.concat_list(positives[column], negatives[column])
            return names.list.unique().list.sort()

        return triplets.with_columns(
            negatives["change"].alias("negative_kind"),
            ids,
            llms=merged("llms"),
            prompt_hashes=merged("prompts"),
            aggregation=pl.lit(self._source.aggregation),
        )


def _by_split(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        split: frame.filter(split=number).drop("split")
        for number, split in enumerate(SPLITS)
    }
