from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pairkit import DataError
from pairkit.dataset.reading import tables, untrusted_tables
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.reading.tables import read_table
from pairkit.dataset.reading.untrusted_tables import ParquetBatches
from tests.pairkit.peak import peak_mib

FRAME = pl.DataFrame(
    {
        "text1": [f"some words {n}" for n in range(3000)],
        "label": [n % 2 for n in range(3000)],
        "more": [[1, 2], [], None] * 1000,
    }
)
LONG = "x" * 100_000


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_valid_files(tmp_path: Path, codec: str, version: str, dictionary: bool) -> None:
    path = tmp_path / "a.parquet"
    how = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary}
    pq.write_table(FRAME.to_arrow(), path, row_group_size=700, data_page_size=2000, **how)
    assert read_table(path).equals(FRAME)
    packed: Any = codec if codec == "zstd" else "lz4" if codec == "gzip" else None
    (tmp_path / "a.arrow").write_bytes(stream(FRAME, compression=packed))
    assert read_table(tmp_path / "a.arrow").equals(FRAME)
    FRAME.clear().write_parquet(path)
    assert read_table(path).equals(FRAME.clear())


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"text1": ["a"] * 200_000}, "has more than"),
        ({"text1": ["a"], "x": [[7] * 50_000]}, "has more than"),
        ({"text1": ["a" * 5_000_000]}, "decompresses to more than 200 times its size"),
        ({"text1": ["a" * 100_000] * 90}, "has texts of more than 200 times its size"),
        ({"negatives": [["a" * 100_000]] * 90}, "has texts of more than 200 times its size"),
        ({f"c{n}": [1] for n in range(60)}, "has more than 50 columns"),
    ],
)
def test_decompression_bombs(
    tmp_path: Path, columns: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted_tables, "FREE_VALUES", 1000)
    monkeypatch.setattr(untrusted_tables, "MAX_COLUMNS", 50)
    monkeypatch.setattr(untrusted_tables, "FREE_BYTES", 1 << 20)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    for packed in (path, tmp_path / "a.parquet.gz"):
        packed.write_bytes(path.read_bytes() if packed == path else gzip.compress(path.read_bytes()))
        with pytest.raises(DataError, match=says):
            read_table(packed)


def test_memory_for_a_small_file_of_many_rows(tmp_path: Path) -> None:
    """Row groups that repeat one value many times."""
    path = tmp_path / "a.parquet"
    rows = pa.table(
        {"text1": pa.DictionaryArray.from_arrays(pa.array([0] * (1 << 22), pa.int8()), ["a" * 99])}
    )
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(3):
            writer.write_table(rows)
    assert path.stat().st_size < 300_000
    imports = "import pyarrow.parquet\nfrom pairkit.dataset.reading.tables import read_table"
    says, mib = peak_mib(imports, "read_table(Path(sys.argv[1]))", path)
    assert "has more than 4,194,304 values" in says
    assert mib < 80  # 1.2 GB decompressed


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("nested", [False, True])
def test_memory_for_a_repeated_long_text(tmp_path: Path, name: str, nested: bool) -> None:
    """An Arrow dictionary: 100 kB for each of 40,000 rows in a file of a few kB."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 40_000, pa.int32()), ["a" * 100_000])
    column = pa.ListArray.from_arrays(list(range(0, 40_001, 20)), texts) if nested else texts
    rows, path = pa.table({"text1": column}), tmp_path / name
    if name == "a.parquet":
        pq.write_table(rows, path, compression="zstd")
    else:
        with pa.ipc.new_stream(path, rows.schema) as writer:
            writer.write_table(rows)
    imports = "import pyarrow.parquet\nfrom pairkit.dataset.reading.tables import read_table"
    says, mib = peak_mib(imports, "read_table(Path(sys.argv[1]))", path)
    assert "one is in too many rows" in says
    assert mib < 100  # 4 GB decompressed


def test_batch_size_with_repeated_long_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 9_000, pa.int8()), ["x" * (900 << 10)])
    pq.write_table(pa.table({"text": texts}), path)
    batches = ParquetBatches(path).read(["text"])
    assert 1000 < next(batches).num_rows < 1200


def test_too_many_distinct_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(f'{{"text1": "a", "k{n}": 1}}' for n in range(300)))
    assert read_table(path).shape == (300, 301)
    monkeypatch.setattr(tables, "FREE_VALUES", 1000)
    with pytest.raises(DataError, match="has 301 distinct keys in 300 lines"):
        read_table(path)
    path.write_text("\n".join(f'{{"text1": {{"k{n}": [{{"x{n}": 1}}]}}}}' for n in range(300)))
    with pytest.raises(DataError, match="distinct keys in 300 lines"):
        read_table(path)


def stream(rows: pl.DataFrame, **options: Any) -> bytes:
    file = io.BytesIO()
    rows.write_ipc_stream(file, **options)
    return file.getvalue()


def test_rows_without_bytes(tmp_path: Path) -> None:
    """A column of nulls has no bytes, so that its header may state any number of rows."""
    claimed, many = struct.pack("<q", 12_345), 1 << 40
    data = stream(pl.DataFrame({name: [None] * 12_345 for name in ("text1", "text2", "label")}))
    assert claimed in data
    path = tmp_path / "a.arrow"
    path.write_bytes(data.replace(claimed, struct.pack("<q", many)))
    with pytest.raises(DataError, match=f"has {many:,} rows in|not readable as an Arrow stream"):
        read_table(path)


BROKEN_FOOTER = b"PAR1" + b"\x19" * 40 + (40).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize(
    "data",
    [b"", b"ARROW1\0\0" * 9, b"\xff" * 99, struct.pack("<II", 0xFFFFFFFF, 1 << 30), BROKEN_FOOTER, b"PAR1"],
)
def test_invalid_files(data: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match="not readable"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum, pl.List, pl.Array])
def test_repeated_long_text_is_refused(tmp_path: Path, kind: type[pl.DataType]) -> None:
    flat = pl.Series([LONG] * 1_000, dtype=pl.Enum([LONG]) if kind is pl.Enum else pl.Categorical)
    rows = pl.DataFrame({"negative": flat.reshape((1_000, 1)) if kind in (pl.List, pl.Array) else flat})
    if kind is pl.List:
        rows = rows.select(pl.col("negative").arr.to_list())
    rows = rows.with_columns(anchor=pl.lit("y"), positive=pl.lit("z"))
    (tmp_path / "a.arrow").write_bytes(stream(rows))
    with pytest.raises(DataError, match="one is in too many rows"):
        read_pairs(tmp_path / "a.arrow")
