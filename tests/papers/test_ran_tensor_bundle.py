from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pairkit.app.errors import DataError
from papers.ran import tensor_bundle
from papers.ran.tensor_bundle import read_bundle

CHECKPOINT = Path(__file__).parents[1] / "aoe_train" / "data" / "ran.ckpt"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for path in CHECKPOINT.parent.glob("ran.ckpt.[id]*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "ran.ckpt"


def test_reads_what_tensorflow_reads():
    variables = read_bundle(CHECKPOINT)
    assert len(variables) == 86
    assert variables["rannet/ran-1/encode-attn/dense-o/kernel"].shape == (12, 8)
    values = np.concatenate([value.ravel() for value in variables.values()])
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, np.load(f"{CHECKPOINT}.npy"))


def test_a_missing_file_is_named(tmp_path: Path, copy: Path):
    with pytest.raises(DataError, match=r"other\.index: not readable"):
        read_bundle(tmp_path / "other")
    Path(f"{copy}.data-00000-of-00001").unlink()
    with pytest.raises(DataError, match=r"data-00000-of-00001: not readable"):
        read_bundle(copy)


def test_a_short_data_file_is_noticed(copy: Path):
    data = Path(f"{copy}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"not shape .* within the file"):
        read_bundle(copy)


def test_something_else_is_no_index(copy: Path):
    for content in (b"", b"x" * 100):
        Path(f"{copy}.index").write_bytes(content)
        with pytest.raises(DataError, match="no index of a TensorFlow checkpoint"):
            read_bundle(copy)


@pytest.mark.parametrize("place", [*range(0, 3000, 97)])
def test_each_damaged_byte_of_the_blocks_is_noticed(copy: Path, place: int):
    index = Path(f"{copy}.index")
    content = bytearray(index.read_bytes())
    content[place] ^= 0x10
    index.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged|compressed"):
        read_bundle(copy)


@given(
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 200),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_index_is_data_or_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[tuple[int, int]], cut: int
):
    """Checksums are made to fit, so that what lies behind them is reached."""
    monkeypatch.setattr(tensor_bundle, "_masked_crc32c", lambda _: ANY)
    for path in CHECKPOINT.parent.glob("ran.ckpt.[id]*"):
        shutil.copy(path, tmp_path)
    index = tmp_path / "ran.ckpt.index"
    content = bytearray(index.read_bytes())
    for place, value in places:
        content[place % len(content)] = value
    index.write_bytes(content[cut:])
    with suppress(DataError):
        read_bundle(tmp_path / "ran.ckpt")


def test_an_index_of_megabytes_and_a_name_without_end(copy: Path):
    with Path(f"{copy}.index").open("wb") as file:
        file.truncate(17 << 20)
    with pytest.raises(DataError, match="larger than 16 MiB"):
        read_bundle(copy)
