"""Quantization: equality with sentence-transformers, and restored values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.model.quantization import quantized, restored, value_ranges

seeds = st.integers(0, 10**6)


def drawn(seed: int, rows: int = 7, dim: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def test_constant_dimensions():
    vectors = np.array([[3, 1], [3, 2]], np.float32)
    codes = quantized(vectors, "int8")
    assert codes[:, 0].tolist() == [-128, -128]
    assert restored(codes, "int8", 2, value_ranges([vectors]))[:, 0].tolist() == [3, 3]


@pytest.mark.parametrize("quantize", ["float32", "int8", "binary", "ubinary"])
@settings(max_examples=30, deadline=None)
@given(seed=seeds, dim=st.integers(1, 20))
def test_codes_equal_sentence_transformers(quantize: Any, seed: int, dim: int):
    from sentence_transformers.util.quantization import quantize_embeddings

    vectors, calibration = drawn(seed, dim=dim), drawn(seed + 1, dim=dim)
    for ours, theirs in (
        (quantized(vectors, quantize), quantize_embeddings(vectors, quantize)),
        (
            quantized(vectors, quantize, value_ranges([calibration])),
            quantize_embeddings(vectors, quantize, calibration_embeddings=calibration),
        ),
    ):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    none = quantized(vectors[:0], quantize)
    assert (none.shape, none.dtype) == ((0, ours.shape[1]), ours.dtype)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_restored_values_are_within_half_a_step(seed: int):
    vectors = drawn(seed)
    ranges = value_ranges([vectors[:2], vectors[2:], vectors[:0]])
    assert (ranges == [vectors.min(0), vectors.max(0)]).all()
    found = restored(quantized(vectors, "int8", ranges), "int8", 12, ranges)
    assert (np.abs(found - vectors) <= (ranges[1] - ranges[0]) / 255 * 0.51).all()
    for bits in ("binary", "ubinary"):
        assert (restored(quantized(vectors, bits), bits, 12) == np.where(vectors > 0, 1, -1)).all()
