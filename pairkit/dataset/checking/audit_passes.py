"""The two passes of an audit: first over hashes of all rows, then over rows with colliding hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch
from pairkit.dataset.reading.reader import PairFrames
from pairkit.dataset.records import PAIR, unordered
from pairkit.similarity.groups import Indices
from pairkit.similarity.measures import count_long

_SEED = secrets.randbits(63)  # random, so that no one can construct collisions
_BATCH = 1 << 13  # rows
_KEYS, _TEXTS = ("key1", "key2"), ("text1", "text2")


class FirstPass:
    """Hashes of everything that must not be in two splits or occur twice."""

    def __init__(self, pairs: PairFrames) -> None:
        self.by_page = all({"url1", "url2"} <= names for names in pairs.known.values())
        counts: list[pl.DataFrame] = []
        hashes: list[pl.DataFrame] = []
        for code, split, rows in key_rows(pairs, by_page=self.by_page):
            counts.append(_counts(rows, split))
            hashes.append(hashes_of(rows).with_columns(pl.lit(code, pl.Int16).alias("split")))
        self.counts = pl.concat(counts).group_by("split", maintain_order=True).sum()
        hashed = pl.concat(hashes)
        keys = pl.concat([hashed.select("split", pl.col(key).alias("key")) for key in _KEYS])
        self.suspects = {
            "key": _in_two(keys, "key"),
            "cluster": _in_two(hashed, "cluster"),
            "pair": hashed.filter(pl.col("pair").is_duplicated())["pair"].unique(),
        }
        texts = hashed.select("split", pl.concat_list(_TEXTS).alias("text")).explode("text")
        present = pl.col("text") != 0
        self.is_new = texts.select(present & pl.col("text").is_first_distinct()).to_series().to_numpy()
        self._texts = texts.filter(present)

    def splits_of_texts(self) -> tuple[Indices, Indices]:
        """Numbers of texts (in order of first occurrence), and the number of the split of each."""
        known = self._texts.select(pl.col("text").unique(maintain_order=True)).with_row_index("number")
        numbered = self._texts.join(known, on="text", how="left", maintain_order="left")
        return numbered["number"].cast(pl.Int64).to_numpy(), numbered["split"].cast(pl.Int64).to_numpy()


class SecondPass:
    """The rows with suspect hashes, and all distinct texts."""

    def __init__(self, pairs: PairFrames, first: FirstPass, scratch: Scratch) -> None:
        self.texts = RecordsOnDisk(scratch, str)
        kept: list[pl.DataFrame] = []
        start = 0
        for _, _, rows in key_rows(pairs, by_page=first.by_page):
            end = start + 2 * rows.height
            new = np.flatnonzero(first.is_new[start:end]).tolist()
            sides = rows["text1"], rows["text2"]
            self.texts.extend(sides[index % 2][index // 2] for index in new)
            kept.append(_reported_columns(rows.filter(_suspect(hashes_of(rows), first.suspects))))
            start = end
        self.suspects = pl.concat(kept)


def key_rows(pairs: PairFrames, *, by_page: bool) -> Iterator[tuple[int, str, pl.DataFrame]]:
    """Batches of rows with split, texts, label, keys and cluster; with number and name of their split."""
    for code, (split, readers) in enumerate(pairs.splits.items()):
        for read in readers:
            rows = read()
            for batch in rows.iter_slices(_BATCH) if rows.height else [rows]:
                yield code, split, _columns(batch, split, by_page=by_page)


def _counts(rows: pl.DataFrame, split: str) -> pl.DataFrame:
    return rows.select(
        pl.lit(split).alias("split"),
        pl.len().cast(pl.Int64).alias("pairs"),
        pl.col("label").sum().alias("labels"),
        count_long(*_TEXTS).sum().alias("long"),
        (pl.col("text1") == pl.col("text2")).sum().cast(pl.Int64).alias("same"),
    )


def _columns(rows: pl.DataFrame, split: str, *, by_page: bool) -> pl.DataFrame:
    texts = [pl.col(name).fill_null("") for name in _TEXTS]
    pages = [_known(rows, f"url{side}") if by_page else pl.lit(None, pl.String) for side in (1, 2)]
    # In a merged dataset, only some rows may have a page.
    pages = [pl.when(page.str.strip_chars() != "").then(page) for page in pages]
    keys = [pl.coalesce(page, text) for page, text in zip(pages, texts, strict=True)]
    return rows.select(
        pl.lit(split).alias("split"),
        *texts,
        pl.col("label").cast(pl.Float64),
        *(key.alias(name) for key, name in zip(keys, _KEYS, strict=True)),
        _known(rows, "cluster").alias("cluster"),
    )


def _known(rows: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if name in rows.columns else pl.lit(None, pl.String)


def hashes_of(rows: pl.DataFrame) -> pl.DataFrame:
    """A hash of each key, cluster, text and pair; 0 for blank values."""

    def hashed(name: str) -> pl.Expr:
        present = (pl.col(name).str.strip_chars() != "").fill_null(value=False)
        return pl.when(present).then(pl.col(name).hash(_SEED)).otherwise(0).alias(name)

    pair = pl.struct(PAIR).hash(_SEED).alias("pair")
    return rows.with_columns(unordered(*_KEYS)).select(*map(hashed, (*_KEYS, "cluster", *_TEXTS)), pair)


def _in_two(hashed: pl.DataFrame, name: str) -> pl.Series:
    """Hashes that occur in two splits."""
    once = hashed.select("split", name).filter(pl.col(name) != 0).unique()
    return once.filter(pl.col(name).is_duplicated())[name].unique()


def _reported_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Copies of the reported columns: views would keep all texts in memory."""
    needed = rows.select("split", "label", *_KEYS, "cluster")
    return pl.DataFrame(needed.rows(), schema=needed.schema, orient="row")


def _suspect(hashes: pl.DataFrame, suspects: Mapping[str, pl.Series]) -> pl.Series:
    of = {"key1": "key", "key2": "key", "cluster": "cluster", "pair": "pair"}
    found = [hashes[name].is_in(suspects[kind].implode()) for name, kind in of.items()]
    return found[0] | found[1] | found[2] | found[3]
