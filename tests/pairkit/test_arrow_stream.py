from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pairkit.arrow_stream import check_arrow_stream
from pairkit.errors import DataError
from pairkit.reader import read_pairs

HERE = Path("x.arrow")
ROWS = pl.DataFrame({"text1": ["a", "b"] * 50, "text2": ["c"] * 100, "label": [1, 0] * 50})


def stream(rows: pl.DataFrame = ROWS, **options: Any) -> bytes:
    file = io.BytesIO()
    rows.write_ipc_stream(file, **options)
    return file.getvalue()


def test_a_stream_of_any_library_is_fine() -> None:
    check_arrow_stream(io.BytesIO(stream()), HERE)
    check_arrow_stream(io.BytesIO(stream(ROWS.cast({"text2": pl.Categorical}))), HERE)
    pyarrow = pytest.importorskip("pyarrow")
    file = io.BytesIO()
    with pyarrow.ipc.new_stream(file, ROWS.to_arrow().schema) as writer:
        writer.write_table(ROWS.to_arrow(), max_chunksize=30)
    check_arrow_stream(file, HERE)


@pytest.mark.parametrize("packed", ["lz4", "zstd"])
def test_packed_streams_are_refused(packed: Any) -> None:
    with pytest.raises(DataError, match=r"x\.arrow: not readable as an Arrow stream"):
        check_arrow_stream(io.BytesIO(stream(compression=packed)), HERE)


def test_rows_that_take_no_bytes_are_refused() -> None:
    """A column of nothing but nulls has no bytes, so that its header may claim any number of rows."""
    told, many = struct.pack("<q", 12_345), 1 << 40
    data = stream(pl.DataFrame({name: [None] * 12_345 for name in ("text1", "text2", "label")}))
    assert told in data
    file = io.BytesIO(data.replace(told, struct.pack("<q", many)))
    with pytest.raises(DataError, match=f"claims {many:,} rows in"):
        check_arrow_stream(file, HERE)


@pytest.mark.parametrize(
    "data", [b"", b"ARROW1\0\0" * 9, b"\xff" * 99, struct.pack("<II", 0xFFFFFFFF, 1 << 30)]
)
def test_what_is_no_stream(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(data)
    with pytest.raises(DataError, match="not readable"):
        read_pairs(path)


def test_one_long_text_in_every_row_is_refused(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text1": ["x" * 100_000] * 1_000}).cast(pl.Categorical)
    rows = rows.with_columns(text2=pl.lit("y"), label=pl.lit(1))
    (tmp_path / "a.arrow").write_bytes(stream(rows))
    with pytest.raises(DataError, match="the same in too many rows"):
        read_pairs(tmp_path / "a.arrow")


@pytest.mark.parametrize("kind", [pl.Enum, pl.List, pl.Array])
def test_so_is_one_in_an_enum_or_in_lists(tmp_path: Path, kind: type[pl.DataType]) -> None:
    text = "x" * 100_000
    flat = pl.Series([text] * 1_000, dtype=pl.Categorical)
    if kind is pl.Enum:
        flat = flat.cast(pl.Enum([text]))
    rows = pl.DataFrame({"negative": flat if kind is pl.Enum else flat.reshape((1_000, 1))})
    if kind is pl.List:
        rows = rows.select(pl.col("negative").arr.to_list())
    assert rows.schema["negative"] == kind
    rows = rows.with_columns(anchor=pl.lit("y"), positive=pl.lit("z"))
    (tmp_path / "a.arrow").write_bytes(stream(rows))
    with pytest.raises(DataError, match="the same in too many rows"):
        read_pairs(tmp_path / "a.arrow")
