"""The candidates of a run, the split of each source text, and the rows of each split.

Texts that share a sentence (as text or as candidate), or have near-identical ones, form a group. A group is
in one split, so no sentence is in two splits.

The split of a group follows from its hash. Shares are therefore met only on average (5 % of 2,000 texts are
100 ± 10), but a text keeps its split when others are added: training data of one version never becomes test
data of the next. Groups of more than ten texts, or of more texts than a share, are in train. Small inputs
have two exceptions: with 20 or more groups, each wanted split gets at least one, and train is never empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from llm_labeler.records import POLARITIES, LabelledPair, Text
from llm_labeler.settings import TextSplitSettings
from pairkit.base.system.seeded import keyed_hash, keyed_unit
from pairkit.dataset.making.group_splits import draw_splits, text_groups
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import SPLITS
from pairkit.similarity.groups import Indices, connected, singletons

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
_TRIPLETS = {"key": pl.UInt64, "id": pl.UInt32, "positive": pl.UInt32, "negative": pl.UInt32}


class DatasetRows:
    """The candidates of a run."""

    def __init__(self, aggregation: str, seed: int, *, triplets: bool) -> None:
        self.aggregation = aggregation
        self._seed = seed
        self.triplets = triplets
        self.texts: list[Text] = []
        self.candidates = self.rows = 0
        self.dropped: Counter[str] = Counter()  # pairs that are not rows, by reason
        self._pending: list[tuple[Any, ...]] = []
        self._tables = [pl.DataFrame(schema=_CANDIDATES)]
        self.triplet_indices: list[tuple[int, int, int, int]] = []  # see _TRIPLETS

    def add(self, text: Text, pairs: Sequence[LabelledPair]) -> None:
        """Add all pairs of one text."""
        rows = self._in_order(text, pairs)
        keys = {number: key for key, number, _ in rows}
        self._add_triplets(rows)
        for number, pair in enumerate(pairs):
            candidate = pair.candidate
            votes = [{"judge": vote.judge, "vote": vote.vote} for vote in pair.votes]
            self._pending.append(
                (
                    *(
                        len(self.texts),
                        candidate.candidate,
                        candidate.polarity,
                        list(candidate.llms),
                        votes,
                    ),
                    *(pair.label, pair.reason, candidate.change, list(candidate.prompt_hashes)),
                    *(pair.polarity, keys.get(number)),
                )
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
        return pl.concat(
            [sources, self.table().filter(pl.col("reason").is_null())["candidate"].alias("")]
        )

    def write_candidates(self, path: Path) -> None:
        """Write all candidates with the reasons of their rejection."""
        table = self.table()
        changes = ("change",) if self.triplets else ()
        columns = (
            "candidate",
            pl.col("proposed").alias("polarity"),
            "llms",
            "votes",
            "label",
            "reason",
        )
        ids, texts = self.texts_at(table["text"])
        write_parquet(
            path, table.select(ids, texts.alias("text"), *columns, *changes), private=True
        )

    def texts_at(self, indices: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The ids and the texts at these indices."""
        ids = pl.Series("text_id", [text.text_id for text in self.texts], pl.String)
        texts = pl.Series("text1", [text.text for text in self.texts], pl.String)
        return ids.gather(indices), texts.gather(indices)

    def _in_order(
        self, text: Text, pairs: Sequence[LabelledPair]
    ) -> list[tuple[int, int, LabelledPair]]:
        """The pairs that become rows, as (key, index among the pairs, pair), sorted by key."""
        seen: set[str] = set()
        rows: list[tuple[int, int, LabelledPair]] = []
        for number, pair in enumerate(pairs):
            sentence = pair.candidate.candidate
            if reason := pair.reason or ("repeated_pair" if sentence in seen else None):
                self.dropped[reason] += 1
                continue
            seen.add(sentence)
            rows.append((keyed_hash(self._seed, "row", text.text_id, sentence), number, pair))
        polarities = {pair.polarity for _, _, pair in rows}
        if self.triplets and len(polarities) == 1:
            self.dropped["no_negative" if "positive" in polarities else "no_positive"] += len(rows)
            return []
        return sorted(rows, key=lambda row: row[:2])

    def _add_triplets(self, rows: Sequence[tuple[int, int, LabelledPair]]) -> None:
        """Make a triplet for each row of the more frequent polarity; rows of the other repeat in turn."""
        sides = [[row for row in rows if row[2].polarity == polarity] for polarity in POLARITIES]
        few, many = sides if len(sides[0]) < len(sides[1]) else reversed(sides)
        for turn, (key, number, pair) in enumerate(many if few else ()):
            index = self.candidates + number
            partner = self.candidates + few[turn % len(few)][1]
            both = (index, partner) if pair.polarity == "positive" else (partner, index)
            self.triplet_indices.append((key, index, *both))

    def _flush(self) -> None:
        columns = zip(*self._pending, strict=True) if self._pending else ((),) * len(_CANDIDATES)
        data = dict(zip(_CANDIDATES, map(list, columns), strict=True))
        self._tables.append(pl.DataFrame(data, schema=_CANDIDATES))
        self._pending = []


class DatasetSplits:
    """The rows by configuration and split; their order by hash mixes labels and texts."""

    def __init__(self, rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool) -> None:
        self._source = rows
        table = rows.table().with_row_index("id")
        splits = pl.Series(
            [SPLITS.index(split_of[text.text_id]) for text in rows.texts], dtype=pl.UInt8
        )
        order = ("split", "key", "id")
        table = table.with_columns(split=splits.gather(table["text"]))
        self._rows = table.filter(pl.col("key").is_not_null()).sort(order)
        triplets = pl.DataFrame(rows.triplet_indices, schema=_TRIPLETS, orient="row")
        triplets = triplets.with_columns(split=table["split"].gather(triplets["id"])).sort(order)
        self._triplet_splits = triplets["split"]
        sides = [table[triplets[polarity]] for polarity in POLARITIES]
        self.graded = graded or not self._rows["label"].is_in([0.0, 1.0]).all()
        self._changes = sides[1]["change"]
        configs = {} if rows.triplets else {"default": self._pairs(), "positive": self._positives()}
        configs["triplet"] = self._triplets(*sides)
        self.frames = {
            config: {
                split: frame.filter(split=number).drop("split")
                for number, split in enumerate(SPLITS)
            }
            for config, frame in configs.items()
            if frame.height
        }

    def counts(self) -> dict[str, Any]:
        """Counts by split and polarity, and by LLM; a pair is counted for each LLM that proposed it."""
        splits = {split: self._counts_of(number) for number, split in enumerate(SPLITS)}
        by_llm: dict[str, dict[str, int]] = {}
        for llms, polarity in self._rows.select("llms", "polarity").iter_rows():
            for name in llms:
                by_llm.setdefault(name, dict.fromkeys(POLARITIES, 0))[polarity] += 1
        kinds = Counter(self._changes.fill_null("unknown").to_list())
        return {
            "splits": splits,
            "llms": dict(sorted(by_llm.items())),
            **({"negative_kinds": dict(sorted(kinds.items()))} if self._source.triplets else {}),
        }

    def _counts_of(self, split: int) -> dict[str, int]:
        rows = self._rows.filter(split=split)
        return {
            "texts": rows["text"].n_unique(),
            **{polarity: int((rows["polarity"] == polarity).sum()) for polarity in POLARITIES},
            "total": rows.height,
            "triplets": int((self._triplet_splits == split).sum()),
        }

    def _pairs(self) -> pl.DataFrame:
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

    def _positives(self) -> pl.DataFrame:
        rows = self._rows.filter(polarity="positive")
        _, texts = self._source.texts_at(rows["text"])
        return rows.select(texts.alias("anchor"), pl.col("candidate").alias("positive"), "split")

    def _triplets(self, positives: pl.DataFrame, negatives: pl.DataFrame) -> pl.DataFrame:
        """The triplets, in tasks that make only triplets with their provenance."""
        ids, texts = self._source.texts_at(positives["text"])
        both = [texts.alias("anchor"), positives["candidate"].alias("positive")]
        triplets = pl.DataFrame(
            [*both, negatives["candidate"].alias("negative"), self._triplet_splits]
        )
        if not self._source.triplets:
            return triplets
        provenance = {
            name: pl.concat_list(positives[column], negatives[column]).list.unique().list.sort()
            for name, column in (("llms", "llms"), ("prompt_hashes", "prompts"))
        }
        return triplets.with_columns(
            negatives["change"].alias("negative_kind"),
            ids,
            **provenance,
            aggregation=pl.lit(self._source.aggregation),
        )


# The unit interval of draws is cut in this order.
_DRAWN = ("test", "validation", "train")
_TRAIN = _DRAWN.index("train")
# Texts in a group outside train: not a share, which would change as the input grows.
_MAX_HELD_OUT = 10
_MIN_GROUPS = 20  # with as many groups, no wanted split stays empty


def split_texts(
    ids: Sequence[str],
    sentences: pl.Series,
    text_indices: Indices,
    settings: TextSplitSettings,
    seed: int,
) -> list[str]:
    """The split of every text; `text_indices` has the text that each sentence belongs to."""
    first_sentence = text_groups(sentences)
    groups = connected(singletons(len(ids)), text_indices, text_indices[first_sentence])
    names = np.unique(groups)
    sizes = np.bincount(groups)[names]
    draws = np.fromiter(
        (keyed_unit(seed, "split", ids[name]) for name in names.tolist()), np.float64
    )
    splits = np.full(len(ids), _TRAIN, np.int8)
    splits[names] = _assign_splits(sizes, draws, settings)
    return [_DRAWN[split] for split in splits[groups].tolist()]


def _assign_splits(
    sizes: npt.NDArray[np.int64], draws: npt.NDArray[np.float64], settings: TextSplitSettings
) -> Indices:
    """The split of every group from the number of its texts and its random draw; all (group,)."""
    total = int(sizes.sum())
    held_out = (settings.test, settings.validation)
    limits = [min(_MAX_HELD_OUT, max(1, round(share * total))) for share in held_out]
    max_sizes = np.array([*limits, total])
    splits = draw_splits(draws, (*held_out, 1 - sum(held_out)))
    splits[sizes > max_sizes[splits]] = _TRAIN

    # Exceptions for small inputs.
    if len(sizes) and not (splits == _TRAIN).any():
        splits[np.lexsort((draws, -sizes))[0]] = _TRAIN
    if len(sizes) >= _MIN_GROUPS:
        for split, share in enumerate(held_out):
            if share > 0 and not (splits == split).any():
                largest = np.flatnonzero(splits == np.bincount(splits).argmax())
                excess = np.maximum(sizes[largest], max_sizes[split])
                moved = np.lexsort((draws[largest], excess))[0]
                splits[largest[moved]] = split
    return splits
