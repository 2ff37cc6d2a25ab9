"""The candidates of a run, collected text by text in a scratch database, as there may be millions."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from llm_labeler.records import POLARITIES, LabelledPair, Text
from pairkit.dataset.parquet import stream_parquet
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
