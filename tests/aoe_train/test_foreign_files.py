"""Files with mutated values: a small twin of `benchmarks/aoe_fuzz.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train._evaluate.overlap import read_digests
from aoe_train._figures.folder import check_folder
from benchmarks.aoe_fuzz import FUZZES, READERS, fuzz, in_one_line, write_model

SEEDS = st.integers(0, 2**48)


@pytest.mark.parametrize("name", FUZZES)
@given(seed=SEEDS)
@settings(max_examples=300)
def test_mutated_values_are_refused_in_one_line(name: str, seed: int) -> None:
    FUZZES[name](seed)


@pytest.mark.parametrize(("name", "content", "read"), READERS, ids=[name for name, _, _ in READERS])
def test_what_is_not_mutated_is_read(
    tmp_path: Path, name: str, content: Any, read: Callable[[Path], object]
) -> None:
    write_model(tmp_path)
    (tmp_path / name).write_text(json.dumps(content))
    assert in_one_line(lambda: read(tmp_path)) or read is check_folder


@pytest.mark.parametrize("content", [b"\x93NUMPY", b"PK\x03\x04", b"", b"\x93NUMPY\x01\x00\xff\xff"])
def test_digests_that_are_no_array(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "training_texts.npy").write_bytes(content)
    assert not in_one_line(lambda: read_digests(tmp_path))
    np.savez(tmp_path / "training_texts.npy.npz", a=np.arange(3))
    (tmp_path / "training_texts.npy.npz").rename(tmp_path / "training_texts.npy")
    assert not in_one_line(lambda: read_digests(tmp_path))


def test_inputs_and_refusals_are_counted() -> None:
    outcome = fuzz(30, 1)
    assert outcome.faults == []
    assert 3 <= outcome.refused < outcome.inputs == 30
