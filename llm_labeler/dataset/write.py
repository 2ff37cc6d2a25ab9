"""From labelled pairs to the dataset folder: counts, card, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from llm_labeler.dataset.card import label_card
from llm_labeler.dataset.rows import NAMES, VOTES, DatasetRows, as_votes, next_frame
from llm_labeler.records import POLARITIES
from pairkit.app.errors import DataError
from pairkit.dataset.records import SPLITS, dataset_folder, file_patterns

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


def write(
    out: Path,
    rows: DatasetRows,
    split_of: Mapping[str, str],
    *,
    graded: bool,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the dataset folder, a shard in memory at a time."""
    if not len(rows):
        raise DataError(_why_empty(rows.dropped, statistics), path=out)
    split_rows = DatasetShards(rows, split_of, graded=graded)
    counts = split_rows.counts() | {"dropped_pairs": dict(sorted(rows.dropped.items()))} | dict(statistics)
    card = label_card(counts, run, file_patterns(split_rows.sizes), graded=split_rows.graded)
    with dataset_folder(out) as folder:
        for config in split_rows.sizes:
            for split, place, count, shard in split_rows.shards(config):
                folder.add(config, split, shard, place, count)
        folder.finish(card=card, statistics=counts, run=run)
    return counts


def _why_empty(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics.get("dropped", {}), **dropped}
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    what = f"no pair is left to write ({listed or 'no LLM proposed any'})"
    if reasons.get("not_answered") and not statistics.get("proposals"):
        return (
            f"{what}: no question was answered; run `label generate` again, with a higher max_cost "
            "(--max-cost), max_tokens (--max-tokens) or max_requests (--max-requests) if that ended it"
        )
    doubts = statistics.get("warnings") or ("look at some with `label show`",)
    return f"{what}; {'; '.join(doubts)}, and see the [filters] and [ensemble] settings"
