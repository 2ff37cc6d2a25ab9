from __future__ import annotations

import io
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit import PairkitError
from pairkit.dataset.reading.reader import read_pairs, read_rows
from pairkit.dataset.reading.tables import read_table, table_rows

FRAME = pl.DataFrame(
    {
        "text1": [f"some words {n}" for n in range(30)],
        "text2": ["other words"] * 30,
        "label": [n % 2 for n in range(30)],
        "more": [[1, 2], []] * 15,
    }
)
FLAT = FRAME.drop("more").write_csv().encode()


def _parquet() -> bytes:
    file = io.BytesIO()
    FRAME.write_parquet(file)
    return file.getvalue()


def _arrow() -> bytes:
    file = io.BytesIO()
    FRAME.write_ipc_stream(file)
    return file.getvalue()


FILES = {
    "a.parquet": _parquet(),
    "a.arrow": _arrow(),
    "a.jsonl": FRAME.write_ndjson().encode(),
    "a.json": FRAME.write_json().encode(),
    "a.csv": FLAT,
    "a.tsv": FLAT.replace(b",", b"\t"),
    "a.txt": FLAT,
}
PIECES = [b'"', b"{", b"[" * 99, b"\\ud800", b"\0", b"\n", b"1e999", b"9" * 30, b"null", b"\xff", b",,,", b""]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.integers(0, 30), st.sampled_from(PIECES) | st.binary(max_size=3)
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25)
@given(CHANGES)
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_give_an_error_with_their_name(
    tmp_path_factory: pytest.TempPathFactory, name: str, changes: list[tuple[float, int, bytes]]
) -> None:
    path, data = tmp_path_factory.getbasetemp() / name, bytearray(FILES[name])
    for place, taken, put in changes:
        start = int(place * len(data))
        data[start : start + taken] = put
    path.write_bytes(data)
    for read in (read_rows,) if path.suffix == ".txt" else (read_rows, read_pairs):
        try:
            read(path)
        except PairkitError as error:
            message = str(error)
            if not message.startswith(str(path)) or "\n" in message:
                pytest.fail(f"names no file, or has several lines: {message!r}")


def rows_or_error(read: Any) -> Any:
    try:
        return read()
    except PairkitError as error:
        return str(error)


CELL = st.text('a",;\t\n\r\x1c \xe9', max_size=4)
QUOTED_CELL = st.builds(lambda text: '"' + text.replace('"', '""') + '"', CELL)
LINE = st.lists(st.sampled_from(["a", "b c"]) | QUOTED_CELL | CELL, min_size=1, max_size=3)


@settings(max_examples=300)
@given(
    st.sampled_from(["a.csv", "a.tsv"]),
    st.lists(LINE, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_whole_table_has_the_rows_that_are_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, name: str, lines: list[list[str]], end: str, well_formed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    separator = "\t" if name == "a.tsv" else ","
    shown = [["h", "i"], *([(line * 2)[:2] for line in lines] if well_formed else lines)]
    path.write_bytes(end.join(map(separator.join, [*shown, []])).encode())
    one_by_one = rows_or_error(lambda: [[*row.values()] for _, row in table_rows(path)])
    whole = rows_or_error(lambda: [[cell or "" for cell in row] for row in read_table(path).rows()])
    assert whole == one_by_one
