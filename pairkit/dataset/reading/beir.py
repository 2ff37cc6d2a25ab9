"""Folders in BEIR's layout: queries, a corpus, and the relevant documents of each query.

```
FOLDER/corpus.jsonl                  _id, text, optionally title
      /queries.jsonl                 _id, text
      /qrels/{train,dev,test}.tsv    query-id, corpus-id, score (0: not relevant); or JSON lines
```

BEIR: Thakur et al., NeurIPS 2021 (arXiv 2104.08663). As there, a title is put before its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.tables import first_row, is_table, read_table

_CORPUS, _QUERIES, _QRELS = "corpus.jsonl", "queries.jsonl", "qrels"


def is_beir(source: object) -> bool:
    """Whether a source is a folder in BEIR's layout."""
    names = (_CORPUS, _QUERIES, _QRELS)
    return isinstance(source, str | Path) and all((Path(source) / name).exists() for name in names)


@dataclass(frozen=True)
class BeirFolder:
    """The texts, each table with the columns id and text, and the files of judgements."""

    corpus: pl.DataFrame
    queries: pl.DataFrame
    judgements: list[Path]

    def relevant(self, path: Path) -> pl.DataFrame:
        """Row, query, document, gain, anchor and positive; texts are null if an id is unknown."""
        rows = read_table(path)
        if rows.width != 3 or rows.columns[:2] != ["query-id", "corpus-id"]:
            raise DataError("expected the columns query-id, corpus-id and score", path=path)
        rows.columns = ["query", "document", "gain"]
        gain, ids = pl.col("gain").cast(pl.Float64, strict=False), pl.col("query", "document")
        rows = rows.with_row_index("row", offset=first_row(path)).with_columns(gain, ids.cast(pl.String))
        if (wrong := rows.filter(pl.col("gain").is_null())).height:
            raise DataError("expected a number as score", path=path, row=wrong["row"][0])
        rows = rows.filter(pl.col("gain") > 0).unique(["query", "document"], maintain_order=True)
        for side, text, table in (("query", "anchor", self.queries), ("document", "positive", self.corpus)):
            texts = table.rename({"id": side, "text": text})
            rows = rows.join(texts, on=side, how="left", maintain_order="left")
        return rows

    def pairs(self, path: Path) -> pl.DataFrame:
        """Each query with each relevant document, as anchor and positive."""
        rows = self.relevant(path)
        unknown = rows.filter(pl.any_horizontal(pl.col("anchor", "positive").is_null()))
        for row, query, document in unknown.select("row", "query", "document").iter_rows():
            ids = one_line(f"{query} or {document}")
            raise DataError(f"no query or document with the id {ids}; remove the row", path=path, row=row)
        return rows.select("anchor", "positive")


def read_beir(folder: Path) -> BeirFolder:
    """Read the texts of a folder."""
    judgements = sorted(filter(is_table, (folder / _QRELS).iterdir()))
    if not judgements:
        raise DataError("has no table such as test.tsv", path=folder / _QRELS)
    return BeirFolder(_texts(folder / _CORPUS), _texts(folder / _QUERIES), judgements)


def _texts(path: Path) -> pl.DataFrame:
    table = read_table(path)
    if missing := {"_id", "text"} - {*table.columns}:
        raise DataError(f"no column {', '.join(sorted(missing))}; expected _id and text", path=path)
    names = [name for name in ("title", "text") if name in table.columns]
    text = pl.concat_str(pl.col(names).cast(pl.String).fill_null(""), separator=" ").str.strip_chars()
    return table.select(id=pl.col("_id").cast(pl.String), text=text).unique("id", maintain_order=True)
