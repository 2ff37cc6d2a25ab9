from __future__ import annotations

import io

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from pairkit import PairkitError

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
    try:
        pairkit.read(path)
    except PairkitError as error:
        message = str(error)
        if not message.startswith(str(path)) or "\n" in message:
            pytest.fail(f"names no file, or has several lines: {message!r}")
