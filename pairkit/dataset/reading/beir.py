"""Folders in BEIR's layout (Thakur et al., NeurIPS 2021, arXiv 2104.08663).

| file | columns |
|---|---|
| corpus.jsonl, or .jsonl.gz | _id, text, optionally title, which is put before the text |
| queries.jsonl, or .jsonl.gz | _id, text |
| qrels/{train,dev,test}.tsv, or JSON lines | query-id, corpus-id, score (0: not relevant) |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.pair_rows import as_text
from pairkit.dataset.reading.tables import first_row, is_table, read_table
from pairkit.dataset.records import ROW

_CORPUS = "corpus"
_QUERIES = "queries"
_QRELS = "qrels"


def is_beir(source: object) -> bool:
    """Whether a source is a folder in BEIR's layout."""
    if not isinstance(source, str | Path):
        return False
    folder = Path(source)
    has_texts = all(_texts_file(folder, name).exists() for name in (_CORPUS, _QUERIES))
    return has_texts and (folder / _QRELS).is_dir()


def _texts_file(folder: Path, name: str) -> Path:
    plain = folder / f"{name}.jsonl"
    return plain if plain.exists() else folder / f"{name}.jsonl.gz"


@dataclass(frozen=True)
class BeirFolder:
    """The texts by id, and the files of judgements."""

    queries: pl.DataFrame  # query, anchor
    corpus: pl.DataFrame  # document, positive
    judgements: list[Path]

    def relevant(self, path: Path) -> pl.DataFrame:
        """Query, document, gain, row, anchor and positive; texts are null if an id is unknown."""
        rows = read_table(path)
        if rows.width != 3 or rows.columns[:2] != ["query-id", "corpus-id"]:
            raise DataError(
                "expected the columns query-id, corpus-id and score", path=path
            )
        rows.columns = ["query", "document", "gain"]
        rows = rows.with_row_index(ROW, offset=first_row(path)).with_columns(
            pl.col("query", "document").cast(pl.String),
            pl.col("gain").cast(pl.Float64, strict=False),
        )
        wrong = rows.filter(~pl.col("gain").is_finite().fill_null(value=False))
        if wrong.height:
            raise DataError("expected a number as score", path=path, row=wrong[ROW][0])
        relevant = rows.filter(pl.col("gain") > 0)
        relevant = relevant.unique(["query", "document"], maintain_order=True)
        for texts, key in ((self.queries, "query"), (self.corpus, "document")):
            relevant = relevant.join(texts, on=key, how="left", maintain_order="left")
        return relevant


def beir_pairs(folder: Path) -> Iterator[tuple[Path, pl.DataFrame]]:
    """Each file of judgements, with its queries and their relevant documents as anchors and positives."""
    beir = read_beir(folder)
    for path in beir.judgements:
        rows = beir.relevant(path)
        unknown = rows.filter(pl.any_horizontal(pl.col("anchor", "positive").is_null()))
        if unknown.height:
            first = unknown.row(0, named=True)
            ids = one_line(f"{first['query']} or {first['document']}")
            raise DataError(
                f"no query or document with the id {ids}; remove the row",
                path=path,
                row=first[ROW],
            )
        yield path, rows.select("anchor", "positive")


def read_beir(folder: Path) -> BeirFolder:
    """Read the texts of a folder."""
    judgements = sorted(filter(is_table, (folder / _QRELS).iterdir()))
    if not judgements:
        raise DataError("has no table such as test.tsv", path=folder / _QRELS)
    queries = _texts(_texts_file(folder, _QUERIES), "query", "anchor")
    corpus = _texts(_texts_file(folder, _CORPUS), "document", "positive")
    return BeirFolder(queries, corpus, judgements)


def _texts(path: Path, key: str, role: str) -> pl.DataFrame:
    """The ids and texts of a file, in columns of these names."""
    table = read_table(path).with_row_index(ROW, offset=1)
    if missing := {"_id", "text"} - {*table.columns}:
        raise DataError(
            f"no column {', '.join(sorted(missing))}; expected _id and text", path=path
        )
    names = [name for name in ("title", "text") if name in table.columns]
    key_texts = as_text(table, "_id", str(path))
    parts = [as_text(table, name, str(path)).fill_null("") for name in names]
    text = pl.concat_str(parts, separator=" ").str.strip_chars()
    texts = table.select(ROW, key_texts.alias(key), text.alias(role))
    texts = texts.unique([key, role], keep="first", maintain_order=True)
    repeated = texts.filter(~pl.col(key).is_first_distinct())
    if repeated.height:
        row, name = repeated.select(ROW, key).row(0)
        raise DataError(
            f"a second text with the id {one_line(str(name))}; remove one",
            path=path,
            row=row,
        )
    return texts.drop(ROW)
