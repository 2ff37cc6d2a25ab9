"""Parquet files that hold far more than they seem to."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit import parquet_sizes, tables
from pairkit.errors import DataError
from pairkit.parquet import read_parquet
from pairkit.parquet_sizes import check_parquet
from pairkit.tables import read_table
from tests.pairkit.peak import peak_mib

FRAME = pl.DataFrame(
    {
        "text1": [f"some words {n}" for n in range(3000)],
        "label": [n % 2 for n in range(3000)],
        "more": [[1, 2], [], None] * 1000,
    }
)


def packed(frame: pl.DataFrame, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(frame.to_arrow(), file, **options)
    return file.getvalue()


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_headers_say_what_another_reader_finds(codec: str, version: str, dictionary: bool) -> None:
    data = packed(
        FRAME,
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionary,
        row_group_size=700,
        data_page_size=2000,
    )
    sizes = check_parquet(io.BytesIO(data), Path("a.parquet"))
    assert sizes.rows == FRAME.height
    assert (sizes.largest_dictionary > 0) == dictionary


def test_what_polars_writes_is_read_too(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        assert check_parquet(file, tmp_path).rows == FRAME.height
    assert read_table(tmp_path / "a.parquet").equals(FRAME)
    FRAME.clear().write_parquet(tmp_path / "b.parquet")
    assert read_table(tmp_path / "b.parquet").equals(FRAME.clear())


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pl.DataFrame({"text1": ["a"] * 200_000}), "claims more than"),
        (pl.DataFrame({"text1": ["a"], "x": [[7] * 50_000]}), "claims more than"),
        (pl.DataFrame({"text1": ["a" * 5_000_000]}), "unpacks to more than 200 times its size"),
        (pl.DataFrame({"text1": ["a" * 100_000] * 90}), "its texts are more than 200 times its size"),
        (pl.DataFrame({f"c{n}": [1] for n in range(60)}), "has more than 50 columns"),
    ],
)
def test_bombs_are_refused(
    tmp_path: Path, frame: pl.DataFrame, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_sizes, "FREE_VALUES", 1000)
    monkeypatch.setattr(parquet_sizes, "MAX_COLUMNS", 50)
    monkeypatch.setattr(parquet_sizes, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(tables, "FREE_BYTES", 1 << 20)
    frame.write_parquet(tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(DataError, match=says):
        read_table(tmp_path / "a.parquet")


def test_one_text_in_many_lists_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FREE_BYTES", 1 << 20)
    pq.write_table(pa.table({"negatives": [["a" * 100_000]] * 90}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="its texts are more than 200 times its size"):
        read_table(tmp_path / "a.parquet")


def test_a_small_file_of_many_rows_takes_no_memory(tmp_path: Path) -> None:
    """Row groups of one value; what is written once is claimed many times."""
    path = tmp_path / "a.parquet"
    rows = pa.table(
        {"text1": pa.DictionaryArray.from_arrays(pa.array([0] * (1 << 22), pa.int8()), ["a" * 99])}
    )
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(3):
            writer.write_table(rows)
    assert path.stat().st_size < 300_000
    says, mib = peak_mib("from pairkit.tables import read_table", "read_table(Path(sys.argv[1]))", path)
    assert "claims more than 4,194,304 values" in says
    assert mib < 50


def test_keys_that_are_ever_others_make_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(f'{{"text1": "a", "k{n}": 1}}' for n in range(300)))
    assert read_table(path).shape == (300, 301)
    monkeypatch.setattr(tables, "FREE_VALUES", 1000)
    with pytest.raises(DataError, match="has 301 different keys in 300 lines"):
        read_table(path)
    path.write_text("\n".join(f'{{"text1": {{"k{n}": [{{"x{n}": 1}}]}}}}' for n in range(300)))
    with pytest.raises(DataError, match="different keys in 300 lines"):
        read_table(path)


Change = tuple[int, int]
SMALL = packed(FRAME.head(5))


@settings(max_examples=400)
@given(
    st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(SMALL)),
)
def test_damaged_headers_are_an_error_or_read(changes: list[Change], cut: int) -> None:
    data = bytearray(SMALL)
    for place, value in changes:
        data[place] = value
    for damaged in (bytes(data), bytes(data[:cut]) + SMALL[-8:], bytes(data[cut:])):
        with suppress(DataError):
            assert check_parquet(io.BytesIO(damaged), Path("a.parquet")).rows <= parquet_sizes.FREE_VALUES


@pytest.mark.parametrize(
    "make",
    [
        lambda: b"PAR1" + b"\x19" * 40 + (40).to_bytes(4, "little") + b"PAR1",
        lambda: b"PAR1" + b"\x1c" * 40 + (40).to_bytes(4, "little") + b"PAR1",
        lambda: b"PAR1" + b"\xff" * 40 + (40).to_bytes(4, "little") + b"PAR1",
        lambda: b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1",
        lambda: b"PAR1",
        lambda: b"",
    ],
)
def test_what_is_no_parquet(make: Callable[[], bytes]) -> None:
    with pytest.raises(DataError, match="malformed headers"):
        check_parquet(io.BytesIO(make()), Path("a.parquet"))


def test_a_table_of_ours_is_checked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    FRAME.write_parquet(path)
    assert read_parquet(path).equals(FRAME)
    assert read_parquet(path, ["label"]).equals(FRAME.select("label"))
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: not readable as parquet"):
        read_parquet(path, ["nothing"])
    monkeypatch.setattr(parquet_sizes, "FREE_VALUES", 10)
    monkeypatch.setattr(parquet_sizes, "MAX_VALUES_PER_BYTE", 0)
    with pytest.raises(DataError, match="claims more than 10 values"):
        read_parquet(path)


def varint(number: int) -> bytes:
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes([*octets, number])


def listed(count: int) -> bytes:
    """The head of a list of structures."""
    return bytes([0xFC]) + varint(count)


def with_footer(footer: bytes, body: bytes = b"") -> bytes:
    return b"PAR1" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def of_pages(pages: int, chunks: int) -> bytes:
    """Pages of no bytes and no values, all of them in each of the chunks of a single row group."""
    page = bytes([0x25, 0, 0x15, 0, 0])
    chunk = b"\x3c\x76" + varint(len(page) * pages << 1) + b"\x26" + varint(4 << 1) + b"\0\0"
    group = b"\x19" + listed(chunks) + chunk * chunks + b"\x26\0\0"
    footer = b"\x15\x02\x19\x1c\0\x16\0\x19\x1c" + group + b"\0"
    return with_footer(footer, page * pages)


def test_pages_of_nothing_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_parquet(io.BytesIO(of_pages(100, 1)), Path("a.parquet")).rows == 0
    monkeypatch.setattr(parquet_sizes, "FREE_PAGES", 50)
    with pytest.raises(DataError, match="pages of less than 256 bytes"):
        check_parquet(io.BytesIO(of_pages(100, 1)), Path("a.parquet"))


def test_chunks_have_no_byte_in_common() -> None:
    """Else a few kilobytes of pages would be read as often as the footer names them."""
    start = time.process_time()
    with pytest.raises(DataError, match="malformed headers"):
        check_parquet(io.BytesIO(of_pages(20_000, 5_000)), Path("a.parquet"))
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "field",
    [b"\x19", b"\x49", b"\x49\x1c\x19"],
    ids=["the version", "row groups", "chunks"],
)
def test_a_footer_of_empty_structures_takes_no_memory(tmp_path: Path, field: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(with_footer(field + listed(8 << 20) + bytes(8 << 20) + b"\0\0"))
    says, mib = peak_mib("from pairkit.tables import read_table", "read_table(Path(sys.argv[1]))", path)
    assert "its headers hold more than those of any table of texts" in says
    assert mib < 100
