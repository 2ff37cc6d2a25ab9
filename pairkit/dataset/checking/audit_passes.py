"""The two passes of an audit: first over hashes of all rows, then over rows with colliding hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch
from pairkit.dataset.reading.reader import PairFrames
from pairkit.dataset.records import PAIR, unordered
from pairkit.similarity.groups import Indices
from pairkit.similarity.measures import count_long

_Hashes = npt.NDArray[np.uint64]
_Mask = npt.NDArray[np.bool_]
_SEED = secrets.randbits(63)  # random, so that no one can construct collisions
_BATCH = 1 << 13  # rows
_KEYS, _TEXTS = ("key1", "key2"), ("text1", "text2")


class FirstPass:
    """Hashes of everything that must not be in two splits or occur twice."""

    def __init__(self, pairs: PairFrames) -> None:
        self.by_page = all({"url1", "url2"} <= names for names in pairs.known.values())
        counts: list[pl.DataFrame] = []
        splits: list[npt.NDArray[np.int16]] = []
        hashes_by_name: dict[str, list[_Hashes]] = {name: [] for name in (*_KEYS, "cluster", "pair", *_TEXTS)}
        for code, split, rows in key_rows(pairs, by_page=self.by_page):
            counts.append(_counts(rows, split))
            splits.append(np.full(rows.height, code, np.int16))
            for name, hashes in hashes_of(rows).items():
                hashes_by_name[name].append(hashes)
        self.counts = pl.concat(counts).group_by("split", maintain_order=True).sum()
        none = np.empty(0, np.uint64)
        split_of = np.concatenate([np.empty(0, np.int16), *splits])
        hashed = {name: np.concatenate([none, *batches]) for name, batches in hashes_by_name.items()}
        self._texts = np.stack([hashed["text1"], hashed["text2"]], axis=1).ravel()
        self._split_of_texts = np.repeat(split_of, 2)
        self.is_new = np.zeros(len(self._texts), np.bool_)  # the first occurrence of each text, row by row
        self.is_new[np.unique(self._texts, return_index=True)[1]] = True
        self.is_new &= self._texts != 0
        keys, split_of_keys = np.concatenate([hashed[key] for key in _KEYS]), np.tile(split_of, 2)
        ordered = np.sort(hashed["pair"])
        self.suspects = {
            "keys": _in_two(keys, split_of_keys),
            "cluster": _in_two(hashed["cluster"], split_of),
            "pair": ordered[1:][ordered[1:] == ordered[:-1]],
        }

    def splits_of_texts(self) -> tuple[Indices, Indices]:
        """Numbers of texts (in order of first occurrence), and the number of the split of each."""
        known = self._texts[self.is_new]
        by_hash = np.argsort(known)
        present = np.flatnonzero(self._texts)
        text = by_hash[np.searchsorted(known[by_hash], self._texts[present])]
        return text, self._split_of_texts[present].astype(np.int64)


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
            kept.append(_reported_columns(rows.filter(pl.Series(_suspect(hashes_of(rows), first.suspects)))))
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


def hashes_of(rows: pl.DataFrame) -> dict[str, _Hashes]:
    """A hash of each key, cluster, pair and text; 0 for blank values."""

    def hashed(name: str) -> pl.Expr:
        present = (pl.col(name).str.strip_chars() != "").fill_null(value=False)
        return pl.when(present).then(pl.col(name).hash(_SEED)).otherwise(0).alias(name)

    columns = (*_KEYS, "cluster", *_TEXTS)
    table = rows.with_columns(unordered(*_KEYS)).select(
        *map(hashed, columns), pl.struct(PAIR).hash(_SEED).alias("pair")
    )
    return {name: table[name].to_numpy() for name in (*columns, "pair")}


def _in_two(hashes: _Hashes, split: npt.NDArray[np.int16]) -> _Hashes:
    """Hashes that occur in two splits."""
    order = np.lexsort((split, hashes))
    hashes, split = hashes[order], split[order]
    crossing = (hashes[1:] == hashes[:-1]) & (split[1:] != split[:-1]) & (hashes[1:] != 0)
    return np.unique(hashes[1:][crossing])


def _reported_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Copies of the reported columns: views would keep all texts in memory."""
    needed = rows.select("split", "label", *_KEYS, "cluster")
    return pl.DataFrame(needed.rows(), schema=needed.schema, orient="row")


def _suspect(hashes: dict[str, _Hashes], suspects: dict[str, _Hashes]) -> _Mask:
    of = {"key1": "keys", "key2": "keys", "cluster": "cluster", "pair": "pair"}
    mask: _Mask = np.zeros(len(hashes["pair"]), np.bool_)
    for name, kind in of.items():
        mask |= np.isin(hashes[name], suspects[kind], kind="sort")  # the table method overflows with 64 bits
    return mask
