from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pairkit import DataError
from pairkit.dataset.parquet import stream_parquet, write_parquet

SCHEMA = {"name": pl.String, "llms": pl.List(pl.String), "votes": pl.List(pl.Struct({"judge": pl.String}))}


def table(rows: int) -> pl.DataFrame:
    return pl.DataFrame(
        [(f"row {n}", ["a", "b"][: n % 3], [{"judge": "x"}] * (n % 2)) for n in range(rows)],
        schema=SCHEMA,
        orient="row",
    )


@pytest.mark.parametrize("rows", [0, 1, 20_000])
def test_stream_parquet(tmp_path: Path, rows: int) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "deep/other.parquet"
    write_parquet(one, table(rows), private=True)
    stream_parquet(other, [table(0), table(rows)], SCHEMA, private=True)
    assert one.read_bytes() == other.read_bytes()
    assert stat.S_IMODE(other.stat().st_mode) == 0o600


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    def frames() -> Iterator[pl.DataFrame]:
        yield table(20_000)
        raise DataError("damaged")

    path = tmp_path / "t.parquet"
    path.write_bytes(b"before")
    with pytest.raises(DataError, match="damaged"):
        stream_parquet(path, frames(), SCHEMA)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("t.parquet", b"before")]
