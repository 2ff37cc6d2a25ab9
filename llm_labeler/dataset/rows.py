"""The candidates of a run, collected text by text in a scratch database, as there may be millions."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from llm_labeler.records import POLARITIES, LabelledPair, Text
from pairkit.dataset.parquet import stream_parquet
from pairkit.dataset.records import SPLITS
from pairkit.similarity.near_duplicates import TextSequence
from pairkit.system.database import scratch_database, scratch_errors
from pairkit.system.seeded import keyed_hash

NAMES = pl.List(pl.String)
VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
ROWS = 250_000  # of one shard
_FETCHED = 20_000  # of them as objects

_CANDIDATES: dict[str, Any] = {
    "text_id": pl.String,
    "text": pl.String,
    "candidate": pl.String,
    "polarity": pl.String,  # as proposed
    "llms": NAMES,
    "votes": VOTES,
    "label": pl.Float64,  # what the run's strategy made of it
    "reason": pl.String,  # why it is no pair; null: it is one
}
_OF_TRIPLETS = {"change": pl.String}  # what a negative changes

# `key` is where a row of the dataset stands in its split, from the lowest; null: it is none. `partner` is the
# row that stands beside it in a triplet, at the place of this one. `llms`, `votes`, `prompts` are numbers of
# `Coded` values.
_TABLES = """
CREATE TABLE candidates (
  id INTEGER PRIMARY KEY, place INTEGER, said TEXT, proposed TEXT, llms INTEGER, votes INTEGER, label REAL,
  reason TEXT, change TEXT, prompts INTEGER, polarity TEXT, key INTEGER, partner INTEGER
);
"""
_ADD = f"INSERT INTO candidates VALUES ({', '.join('?' * 13)})"  # noqa: S608 - constants
_ALL = "SELECT place, said, proposed, llms, votes, label, reason, change FROM candidates ORDER BY id"
_EMITTED = "SELECT said FROM candidates WHERE reason IS NULL ORDER BY id"
_SAID = "SELECT said FROM candidates WHERE id = ?"
_AT_ONCE = 2_000  # candidates written to the database in one step
_LOWEST = 1 << 63  # SQLite's numbers have a sign, keys have none

V = TypeVar("V", bound=Hashable)


class ValueCodes(Generic[V]):
    """Few distinct values: each is kept once, and known by a number."""

    def __init__(self) -> None:
        self._numbers: dict[V, int] = {}

    def number(self, value: V) -> int:
        """What stands for a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def column(
        self, numbers: Sequence[int], dtype: pl.DataType, as_data: Callable[[V], list[Any]]
    ) -> pl.Series:
        """The lists that numbers stand for."""
        values = pl.Series([*map(as_data, self._numbers)], dtype=dtype)
        return values.gather(pl.Series(np.array(numbers, dtype=np.uint32)))


class DatasetRows:
    """The candidates of a run and the rows that the dataset has of them, collected text by text."""

    def __init__(self, strategy: str, seed: int, *, triplets: bool = False, shard: int = ROWS) -> None:
        """Nothing yet."""
        self.strategy, self._seed, self.triplets, self.shard = strategy, seed, triplets, shard
        self.texts: list[Text] = []
        self.candidates = 0
        self.dropped: Counter[str] = Counter()  # why pairs that were added are no rows
        self.llms: ValueCodes[tuple[str, ...]] = ValueCodes()
        self.prompts: ValueCodes[tuple[str, ...]] = ValueCodes()
        self.votes: ValueCodes[tuple[tuple[str, str], ...]] = ValueCodes()
        self.has_shares = False  # whether a label is neither 0 nor 1
        # Rows of each text by polarity, and over all texts by who proposed them and by what negatives change.
        self.by_text = {polarity: array("I") for polarity in POLARITIES}
        self.by_llms: Counter[tuple[tuple[str, ...], str]] = Counter()
        self.negative_kinds: Counter[str] = Counter()
        self._emitted = array("I")  # ids of the candidates that were not turned down
        self._waiting: list[tuple[Any, ...]] = []
        self._connection = scratch_database(_TABLES)  # which closes with the last of us

    def __len__(self) -> int:
        return self.by_llms.total()

    def add(self, text: Text, pairs: Sequence[LabelledPair]) -> None:
        """Take in the pairs of one text, each text once.

        A pair that the ensemble turned down is counted by its reason, a candidate that came before as
        `repeated_pair`; neither becomes a row. Of triplets, pairs that have nothing to stand beside are
        counted as `no_negative` or `no_positive`.
        """
        rows = self._in_order(text, pairs)
        partners = self._partners(rows)
        for polarity, counts in self.by_text.items():
            counts.append(sum(pair.polarity == polarity for _, _, pair in rows))
        keys = {number: key for key, number, _ in rows}
        for number, pair in enumerate(pairs):
            candidate, own = pair.candidate, self.candidates + number
            if pair.reason is None:
                self._emitted.append(own)
            partner = partners.get(number)
            self._waiting.append(
                (
                    *(own, len(self.texts), candidate.candidate, candidate.polarity),
                    self.llms.number(candidate.llms),
                    self.votes.number(tuple((vote.judge, vote.vote) for vote in pair.votes)),
                    *(pair.label, pair.reason, candidate.change),
                    *(self.prompts.number(candidate.prompt_hashes), pair.polarity),
                    *(keys.get(number), None if partner is None else self.candidates + partner),
                )
            )
        self.texts.append(text)
        self.candidates += len(pairs)
        if len(self._waiting) >= _AT_ONCE:
            self._flush()

    def emitted(self, texts: Sequence[Text]) -> TextSequence:
        """What texts say, and behind it all candidates that were not turned down, as they were added."""
        self._flush()
        return _Sentences(texts, self._emitted, self._connection)

    def write_candidates(self, path: Path) -> None:
        """Write the table of all candidates, with why each is no pair; of triplets with what it changes."""
        schema = _CANDIDATES | (_OF_TRIPLETS if self.triplets else {})
        stream_parquet(path, self._candidates(schema), schema, private=True)

    @contextmanager
    def select(self, query: str, split_of: bytes = b"") -> Iterator[sqlite3.Cursor]:
        """The rows of a query, to which `split_of(place)` is known; one after the other in memory."""
        self._flush()
        with scratch_errors():
            self._connection.create_function("split_of", 1, split_of.__getitem__, deterministic=True)
            yield self._connection.execute(query)

    def _in_order(self, text: Text, pairs: Sequence[LabelledPair]) -> list[tuple[int, int, LabelledPair]]:
        """Those of a text's pairs that become rows, in the dataset's order: key, number among all, pair."""
        seen: set[str] = set()
        rows: list[tuple[int, int, LabelledPair]] = []
        for number, pair in enumerate(pairs):
            said = pair.candidate.candidate
            if reason := pair.reason or ("repeated_pair" if said in seen else None):
                self.dropped[reason] += 1
                continue
            seen.add(said)
            rows.append((keyed_hash(self._seed, "row", text.text_id, said) - _LOWEST, number, pair))
        polarities = {pair.polarity for _, _, pair in rows}
        if self.triplets and len(polarities) == 1:
            self.dropped["no_negative" if "positive" in polarities else "no_positive"] += len(rows)
            return []
        for _, _, pair in rows:
            self.by_llms[pair.candidate.llms, pair.polarity] += 1
            self.has_shares |= pair.label not in (0, 1)
        return sorted(rows, key=lambda row: row[:2])

    def _partners(self, rows: Sequence[tuple[int, int, LabelledPair]]) -> dict[int, int]:
        """Of each positive one of the negatives and the other way round; the fewer take turns."""
        sides = [[row for row in rows if row[2].polarity == polarity] for polarity in POLARITIES]
        few, many = sides if len(sides[0]) < len(sides[1]) else reversed(sides)
        found = {}
        for turn, (_, number, pair) in enumerate(many if few else ()):
            _, other, partner = few[turn % len(few)]
            found[number] = other
            negative = pair if pair.polarity == "negative" else partner
            kind = negative.candidate.change
            self.negative_kinds["unknown" if kind is None else kind] += 1
        return found

    def _candidates(self, schema: dict[str, Any]) -> Iterator[pl.DataFrame]:
        yield pl.DataFrame(schema=schema)
        with self.select(_ALL) as rows:
            for _ in range(0, self.candidates, self.shard):
                yield next_frame(rows, self._candidates_of, self.shard).select(*schema)

    def _candidates_of(self, rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
        place, said, proposed, llms, votes, label, reason, change = zip(*rows, strict=True)
        texts = [self.texts[number] for number in place]
        data = {
            "text_id": [text.text_id for text in texts],
            "text": [text.text for text in texts],
            "candidate": said,
            "polarity": proposed,
            "llms": self.llms.column(llms, NAMES, list),
            "votes": self.votes.column(votes, VOTES, as_votes),
            "label": label,
            "reason": reason,
            "change": change,
        }
        return pl.DataFrame(data, schema=_CANDIDATES | _OF_TRIPLETS)

    def _flush(self) -> None:
        with scratch_errors():
            self._connection.executemany(_ADD, self._waiting)
        self._waiting = []


class _Sentences:
    """Texts in memory and, behind them, candidates on disk; each is read when it is needed."""

    def __init__(self, texts: Sequence[Text], ids: Sequence[int], connection: sqlite3.Connection) -> None:
        self._texts, self._ids, self._connection = texts, ids, connection

    def __len__(self) -> int:
        return len(self._texts) + len(self._ids)

    def __getitem__(self, place: int) -> str:
        if place < len(self._texts):
            return self._texts[place].text
        with scratch_errors():
            ((said,),) = self._connection.execute(_SAID, (self._ids[place - len(self._texts)],))
        return str(said)

    def __iter__(self) -> Iterator[str]:
        yield from (text.text for text in self._texts)
        with scratch_errors():
            for (said,) in self._connection.execute(_EMITTED):
                yield said


def next_frame(
    rows: Iterator[tuple[Any, ...]],
    frame_of: Callable[[Sequence[tuple[Any, ...]]], pl.DataFrame],
    most: int,
) -> pl.DataFrame:
    """The next rows of a query, of which there is at least one, a few at a time made into a frame."""
    some = islice(rows, most)
    return pl.concat([frame_of(few) for few in iter(lambda: [*islice(some, _FETCHED)], [])])


def as_votes(votes: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Votes as rows have them."""
    return [{"judge": judge, "vote": vote} for judge, vote in votes]


Rows = Sequence[tuple[Any, ...]]

_ROWS = "FROM candidates AS row WHERE row.key IS NOT NULL"
_IN_ORDER = "ORDER BY split_of(row.place), row.key, row.id"
# CROSS JOIN has the partner looked up, which stands near by.
_PAIRED = "FROM candidates AS row CROSS JOIN candidates AS partner ON partner.id = row.partner"
_FIRST = "row.polarity = 'positive'"
_BOTH = f"iif({_FIRST}, row.{{0}}, partner.{{0}}), iif({_FIRST}, partner.{{0}}, row.{{0}})"
_QUERIES = {
    "default": "SELECT row.place, row.said, row.label, row.polarity, row.llms, row.prompts, row.votes"
    f" {_ROWS} {_IN_ORDER}",
    "positive": f"SELECT row.place, row.said {_ROWS} AND row.polarity = 'positive' {_IN_ORDER}",
    "triplet": f"SELECT row.place, {', '.join(map(_BOTH.format, ('said', 'change', 'llms', 'prompts')))}"
    f" {_PAIRED} {_IN_ORDER}",
}


class DatasetShards:
    """The rows of a run by split.

    The seed decides each row's place by what the row says: neither label, text nor LLM makes a run of
    rows, so batches are mixed even if nobody shuffles, and added texts leave the others' order alone.
    In `triplet` each positive of a text stands with one of its negatives, and each negative with one of its
    positives; the fewer take turns. So no text of a pair is missing, and every row is whole for those who
    read one negative a row.
    """

    def __init__(self, rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool) -> None:
        """Count the rows of each split."""
        self._rows = rows
        self.graded = graded or rows.has_shares
        self._splits = bytes(SPLITS.index(split_of[text.text_id]) for text in rows.texts)
        positives, negatives = (np.array(rows.by_text[polarity], np.int64) for polarity in POLARITIES)
        triplets = np.where(np.minimum(positives, negatives), np.maximum(positives, negatives), 0)
        self._counts = {
            "texts": self._by_split((positives + negatives) > 0),
            "positive": self._by_split(positives),
            "negative": self._by_split(negatives),
            "total": self._by_split(positives + negatives),
            "triplets": self._by_split(triplets),
        }

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Configuration to split to rows; a configuration without any row is left out.

        Of triplets `triplet` stands alone, so that whoever opens the folder reads triplets.
        """
        counts = {"default": "total", "positive": "positive", "triplet": "triplets"}
        configs = ("triplet",) if self._rows.triplets else tuple(counts)
        return {
            name: self._counts[counts[name]] for name in configs if any(self._counts[counts[name]].values())
        }

    def counts(self) -> dict[str, Any]:
        """Counts by split and polarity, and by LLM; a pair that several proposed counts for each."""
        by_llm: dict[str, dict[str, int]] = {}
        for (llms, polarity), count in self._rows.by_llms.items():
            for name in llms:
                by_llm.setdefault(name, dict.fromkeys(POLARITIES, 0))[polarity] += count
        kinds = {"negative_kinds": dict(sorted(self._rows.negative_kinds.items()))}
        return {
            "splits": {
                split: {name: counts[split] for name, counts in self._counts.items()} for split in SPLITS
            },
            "llms": dict(sorted(by_llm.items())),
            **(kinds if self._rows.triplets else {}),
        }

    def shards(self, config: str) -> Iterator[tuple[str, int, int, pl.DataFrame]]:
        """Each split's shards in order: the split, the shard's place, how many there are, its rows."""
        with self._rows.select(_QUERIES[config], self._splits) as rows:
            for split, size in self.sizes[config].items():
                count = -(-size // self._rows.shard)
                for place in range(count):
                    most = min(self._rows.shard, size - place * self._rows.shard)
                    yield split, place, count, next_frame(rows, self._makes[config], most)

    @property
    def _makes(self) -> dict[str, Callable[[Rows], pl.DataFrame]]:
        triplet = self._triplets_with_provenance if self._rows.triplets else self._triplets
        return {"default": self._pairs, "positive": self._positives, "triplet": triplet}

    def _pairs(self, rows: Rows) -> pl.DataFrame:
        places, said, labels, polarities, llms, prompts, votes = zip(*rows, strict=True)
        return pl.DataFrame(
            {
                "text1": self._said(places),
                "text2": pl.Series(said, dtype=pl.String),
                "label": pl.Series(labels, dtype=pl.Float64).cast(pl.Float32 if self.graded else pl.Int64),
                "text_id": self._ids(places),
                "polarity": pl.Series(polarities, dtype=pl.String),
                "llms": self._rows.llms.column(llms, NAMES, list),
                "prompt_hashes": self._rows.prompts.column(prompts, NAMES, list),
                "votes": self._rows.votes.column(votes, VOTES, as_votes),
                "strategy": pl.repeat(self._rows.strategy, len(rows), dtype=pl.String, eager=True),
            }
        )

    def _positives(self, rows: Rows) -> pl.DataFrame:
        places, said = zip(*rows, strict=True)
        return pl.DataFrame({"anchor": self._said(places), "positive": pl.Series(said, dtype=pl.String)})

    def _triplets(self, rows: Rows) -> pl.DataFrame:
        places, positives, negatives, *_ = zip(*rows, strict=True)
        return pl.DataFrame(
            {
                "anchor": self._said(places),
                "positive": pl.Series(positives, dtype=pl.String),
                "negative": pl.Series(negatives, dtype=pl.String),
            }
        )

    def _triplets_with_provenance(self, rows: Rows) -> pl.DataFrame:
        """The same with what is known of each: the kind of its negative, and where both texts come from."""
        places, _, _, _, changes, *both = zip(*rows, strict=True)
        llms, prompts = (
            pl.concat_list(one, other).list.unique().list.sort()
            for one, other in (
                [self._rows.llms.column(numbers, NAMES, list) for numbers in both[:2]],
                [self._rows.prompts.column(numbers, NAMES, list) for numbers in both[2:]],
            )
        )
        return self._triplets(rows).with_columns(
            pl.Series("negative_kind", changes, dtype=pl.String),
            self._ids(places).alias("text_id"),
            llms.alias("llms"),
            prompts.alias("prompt_hashes"),
            pl.lit(self._rows.strategy).alias("strategy"),
        )

    def _said(self, places: Sequence[int]) -> pl.Series:
        return pl.Series([self._rows.texts[place].text for place in places], dtype=pl.String)

    def _ids(self, places: Sequence[int]) -> pl.Series:
        return pl.Series([self._rows.texts[place].text_id for place in places], dtype=pl.String)

    def _by_split(self, of_texts: np.ndarray[Any, Any]) -> dict[str, int]:
        """The sum of each split's texts."""
        splits = np.frombuffer(self._splits, np.uint8)
        return {split: int(of_texts[splits == place].sum()) for place, split in enumerate(SPLITS)}
