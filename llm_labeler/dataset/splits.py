"""The candidates of a run, which split each source text goes to, and the rows of each split.

Texts are never parted from what they are tied to: a text that is nearly the same, and whoever has a sentence
in common with them, as text or as candidate. So no sentence is in two splits.

Each group of tied texts draws its split by a hash of its own. The price is that shares are met on average
only (of 2,000 texts at 5 % about 100, give or take 10); in return a text stays where it is when others are
added, so that what one version trained on never becomes the next one's test data. Groups of more than ten
texts always go to train, and so do those of more texts than a share wants. Two exceptions, both for small
inputs: a share that nobody drew gets one group if there are 20 or more, and train is never empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from llm_labeler.records import POLARITIES, LabelledPair, Text
from llm_labeler.settings import TextSplitSettings
from pairkit.app.printable import normalize
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.records import SPLITS
from pairkit.similarity.groups import Places, alone, connected
from pairkit.similarity.near_duplicates import TextSequence, near_identical_to
from pairkit.system.seeded import keyed_hash, keyed_unit

NAMES = pl.List(pl.String)
VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
_AT_ONCE = 20_000  # candidates that are objects before they become a table

_CANDIDATES: dict[str, Any] = {
    "place": pl.UInt32,  # of the text
    "candidate": pl.String,
    "proposed": pl.String,  # as what
    "llms": NAMES,
    "votes": VOTES,
    "label": pl.Float64,  # what the run's aggregation made of it
    "reason": pl.String,  # why it is no pair; null: it is one
    "change": pl.String,  # what a negative of triplets changes
    "prompts": NAMES,
    "polarity": pl.String,
    "key": pl.UInt64,  # orders the rows of a split; null: it is no row
}
_TRIPLETS = {"key": pl.UInt64, "id": pl.UInt32, "positive": pl.UInt32, "negative": pl.UInt32}


class DatasetRows:
    """The candidates of a run."""

    def __init__(self, aggregation: str, seed: int, *, triplets: bool = False) -> None:
        self.aggregation, self._seed, self.triplets = aggregation, seed, triplets
        self.texts: list[Text] = []
        self.candidates = self.rows = 0
        self.dropped: Counter[str] = Counter()  # why pairs that were added are no rows
        self._waiting: list[tuple[Any, ...]] = []
        self._tables = [pl.DataFrame(schema=_CANDIDATES)]
        self.numbers: list[tuple[int, int, int, int]] = []  # of the candidates of each triplet

    def add(self, text: Text, pairs: Sequence[LabelledPair]) -> None:
        """Take in the pairs of one text, each text once; what is no row is counted by its reason."""
        rows = self._in_order(text, pairs)
        keys = {number: key for key, number, _ in rows}
        self._pair_up(rows)
        for number, pair in enumerate(pairs):
            candidate = pair.candidate
            votes = [{"judge": vote.judge, "vote": vote.vote} for vote in pair.votes]
            self._waiting.append(
                (
                    *(len(self.texts), candidate.candidate, candidate.polarity, list(candidate.llms), votes),
                    *(pair.label, pair.reason, candidate.change, list(candidate.prompt_hashes)),
                    *(pair.polarity, keys.get(number)),
                )
            )
        self.texts.append(text)
        self.candidates, self.rows = self.candidates + len(pairs), self.rows + len(rows)
        if len(self._waiting) >= _AT_ONCE:
            self._flush()

    def table(self) -> pl.DataFrame:
        """All candidates, in the order in which they were added."""
        self._flush()
        self._tables = [pl.concat(self._tables)]
        return self._tables[0]

    def emitted(self, texts: Sequence[Text]) -> pl.Series:
        """What texts say, and behind it all candidates that were not turned down, as they were added."""
        said = pl.Series([text.text for text in texts], dtype=pl.String)
        return pl.concat([said, self.table().filter(pl.col("reason").is_null())["candidate"].alias("")])

    def write_candidates(self, path: Path) -> None:
        """Write the table of all candidates, with why each is no pair; of triplets with what it changes."""
        found = self.table()
        changes = ("change",) if self.triplets else ()
        columns = ("candidate", pl.col("proposed").alias("polarity"), "llms", "votes", "label", "reason")
        ids, texts = self.of_texts(found["place"])
        write_parquet(path, found.select(ids, texts.alias("text"), *columns, *changes), private=True)

    def of_texts(self, places: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The ids of texts and what they say."""
        ids = pl.Series("text_id", [text.text_id for text in self.texts], pl.String)
        said = pl.Series("text1", [text.text for text in self.texts], pl.String)
        return ids.gather(places), said.gather(places)

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
            rows.append((keyed_hash(self._seed, "row", text.text_id, said), number, pair))
        polarities = {pair.polarity for _, _, pair in rows}
        if self.triplets and len(polarities) == 1:
            self.dropped["no_negative" if "positive" in polarities else "no_positive"] += len(rows)
            return []
        return sorted(rows, key=lambda row: row[:2])

    def _pair_up(self, rows: Sequence[tuple[int, int, LabelledPair]]) -> None:
        """A triplet for each row of the more frequent polarity; the fewer of the other take turns."""
        sides = [[row for row in rows if row[2].polarity == polarity] for polarity in POLARITIES]
        few, many = sides if len(sides[0]) < len(sides[1]) else reversed(sides)
        for turn, (key, number, pair) in enumerate(many if few else ()):
            own, other = self.candidates + number, self.candidates + few[turn % len(few)][1]
            both = (own, other) if pair.polarity == "positive" else (other, own)
            self.numbers.append((key, own, *both))

    def _flush(self) -> None:
        columns = zip(*self._waiting, strict=True) if self._waiting else ((),) * len(_CANDIDATES)
        data = dict(zip(_CANDIDATES, map(list, columns), strict=True))
        self._tables.append(pl.DataFrame(data, schema=_CANDIDATES))
        self._waiting = []


class DatasetSplits:
    """The rows of a run by configuration and split, in an order by hash that mixes labels and texts."""

    def __init__(self, rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool) -> None:
        """Put the rows in order."""
        self._source = rows
        table = rows.table().with_row_index("id")
        splits = pl.Series([SPLITS.index(split_of[text.text_id]) for text in rows.texts], dtype=pl.UInt8)
        order = ("split", "key", "id")
        table = table.with_columns(split=splits.gather(table["place"]))
        self._rows = table.filter(pl.col("key").is_not_null()).sort(order)
        triplets = pl.DataFrame(rows.numbers, schema=_TRIPLETS, orient="row")
        triplets = triplets.with_columns(split=table["split"].gather(triplets["id"])).sort(order)
        self._triplet_splits = triplets["split"]
        sides = [table[triplets[polarity]] for polarity in POLARITIES]
        self.graded = graded or not self._rows["label"].is_in([0.0, 1.0]).all()
        self._changes = sides[1]["change"]
        made = {} if rows.triplets else {"default": self._pairs(), "positive": self._positives()}
        made["triplet"] = self._triplets(*sides)
        self.frames = {
            config: {split: frame.filter(split=number).drop("split") for number, split in enumerate(SPLITS)}
            for config, frame in made.items()
            if frame.height
        }

    def counts(self) -> dict[str, Any]:
        """Counts by split and polarity, and by LLM; a pair that several proposed counts for each."""
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
            "texts": rows["place"].n_unique(),
            **{polarity: int((rows["polarity"] == polarity).sum()) for polarity in POLARITIES},
            "total": rows.height,
            "triplets": int((self._triplet_splits == split).sum()),
        }

    def _pairs(self) -> pl.DataFrame:
        rows = self._rows
        ids, texts = self._source.of_texts(rows["place"])
        return rows.select(
            texts,
            pl.col("candidate").alias("text2"),
            pl.col("label").cast(pl.Float32 if self.graded else pl.Int64),
            ids,
            "polarity",
            "llms",
            pl.col("prompts").alias("prompt_hashes"),
            "votes",
            pl.lit(self._source.aggregation).alias("strategy"),
            "split",
        )

    def _positives(self) -> pl.DataFrame:
        rows = self._rows.filter(polarity="positive")
        _, texts = self._source.of_texts(rows["place"])
        return rows.select(texts.alias("anchor"), pl.col("candidate").alias("positive"), "split")

    def _triplets(self, positives: pl.DataFrame, negatives: pl.DataFrame) -> pl.DataFrame:
        """Triplets, in the task of that name with the kind of the negative and where both texts come from."""
        ids, texts = self._source.of_texts(positives["place"])
        both = [texts.alias("anchor"), positives["candidate"].alias("positive")]
        made = pl.DataFrame([*both, negatives["candidate"].alias("negative"), self._triplet_splits])
        if not self._source.triplets:
            return made
        provenance = {
            name: pl.concat_list(positives[column], negatives[column]).list.unique().list.sort()
            for name, column in (("llms", "llms"), ("prompt_hashes", "prompts"))
        }
        return made.with_columns(
            negatives["change"].alias("negative_kind"),
            ids,
            **provenance,
            strategy=pl.lit(self._source.aggregation),
        )


_TRAIN, _VALIDATION, _TEST = range(3)
_NAMES = ("train", "validation", "test")
_LARGEST_HELD_OUT = 10  # texts in a group; a number, not a share, as the latter would move with the input
_FEWEST_GROUPS = 20  # from which no wanted split stays empty


def split_texts(
    ids: Sequence[str],
    sentences: TextSequence,
    owners: Places,
    settings: TextSplitSettings,
    seed: int,
) -> list[str]:
    """The split (`train`, `validation`, `test`) of every text; (text,)."""
    groups = _tied(len(ids), sentences, owners)
    firsts = np.flatnonzero(groups == alone(len(ids)))
    sizes = np.bincount(groups, minlength=len(ids))[firsts]
    draws = np.fromiter(
        (keyed_unit(seed, "split", ids[first]) for first in firsts.tolist()), np.float64, len(firsts)
    )
    splits = np.zeros(len(ids), np.int8)
    splits[firsts] = _assign_splits(sizes, draws, settings)
    return [_NAMES[split] for split in splits[groups]]


def normalised(sentence: str) -> str:
    """What two sentences share that count as one: case, width and blanks aside."""
    # Folding can undo the normal form and the other way round; twice is enough to settle it.
    folded = normalize("NFKC", sentence).casefold()
    return " ".join(normalize("NFKC", folded).casefold().split())


def _tied(count: int, sentences: TextSequence, owners: Places) -> Places:
    """The first of the texts that each text may not be parted from."""
    near = near_identical_to(sentences)
    groups = connected(alone(count), owners, owners[near])
    del near
    return connected(groups, *_sharing(sentences, owners))


def _sharing(sentences: TextSequence, owners: Places) -> tuple[Places, Places]:
    """Texts that have a sentence in common."""
    keys = np.fromiter(map(_key, iter(sentences)), np.uint64, len(sentences))
    order = np.argsort(keys)
    order = order[np.searchsorted(keys[order], 1) :]  # a sentence that says nothing has no key
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return owners[order[same]], owners[order[same + 1]]


def _key(sentence: str) -> int:
    """64 bits that stand for what a sentence says; 0 where it says nothing."""
    said = normalised(sentence)
    if not said:
        return 0
    data = said.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1


def _assign_splits(
    sizes: npt.NDArray[np.int64], draws: npt.NDArray[np.float64], settings: TextSplitSettings
) -> npt.NDArray[np.int8]:
    """The split of every group, given the number of its texts and its draw; (group,) all."""
    shares = {_TEST: settings.test, _VALIDATION: settings.validation}
    total = int(sizes.sum())
    most = {split: min(_LARGEST_HELD_OUT, max(1, round(share * total))) for split, share in shares.items()}
    splits = np.full(len(sizes), _TRAIN, np.int8)
    is_test = draws < settings.test
    splits[is_test & (sizes <= most[_TEST])] = _TEST
    is_validation = ~is_test & (draws < settings.test + settings.validation)
    splits[is_validation & (sizes <= most[_VALIDATION])] = _VALIDATION
    if len(sizes) and not (splits == _TRAIN).any():
        splits[np.lexsort((draws, -sizes))[0]] = _TRAIN
    if len(sizes) >= _FEWEST_GROUPS:
        for split, share in shares.items():
            if share > 0 and not (splits == split).any():
                left = np.flatnonzero(splits == np.bincount(splits, minlength=len(_NAMES)).argmax())
                smallest = np.lexsort((draws[left], np.maximum(sizes[left], most[split])))[0]
                splits[left[smallest]] = split
    return splits
