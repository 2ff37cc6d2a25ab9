"""Quantization: equality with sentence-transformers, and restored values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.model.quantization import (
    QUANTIZE,
    bytes_of,
    calibrated,
    checked_dim,
    dtype_of,
    named_quantize,
    quantized,
    restored,
    value_ranges,
    width_of,
)
from pairkit import ConfigError

quick = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 10**6)


def drawn(seed: int, rows: int = 7, dim: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def test_constant_dimensions():
    vectors = np.array([[3, 1], [3, 2]], np.float32)
    ranges = value_ranges([vectors])
    codes = quantized(vectors, "int8")
    assert codes[:, 0].tolist() == [-128, -128]
    assert restored(codes, "int8", 2, ranges)[:, 0].tolist() == [3, 3]


@pytest.mark.parametrize("quantize", QUANTIZE)
@quick
@given(seed=seeds, dim=st.integers(1, 20))
def test_codes_equal_sentence_transformers(quantize, seed, dim):
    from sentence_transformers.util.quantization import quantize_embeddings

    vectors, calibration = drawn(seed, dim=dim), drawn(seed + 1, dim=dim)
    how = named_quantize(quantize)
    for ours, theirs in (
        (quantized(vectors, how), quantize_embeddings(vectors, quantize)),
        (
            quantized(vectors, how, value_ranges([calibration])),
            quantize_embeddings(vectors, quantize, calibration_embeddings=calibration),
        ),
    ):
        assert ours.dtype == theirs.dtype == dtype_of(how)
        assert (ours == theirs).all()
    assert ours.shape == (7, width_of(dim, how))
    assert ours.nbytes == 7 * bytes_of(dim, how)
    none = quantized(vectors[:0], how)
    assert (none.shape, none.dtype) == ((0, width_of(dim, how)), dtype_of(how))


@quick
@given(seed=seeds)
def test_restored_values_are_within_half_a_step(seed):
    vectors = drawn(seed)
    ranges = value_ranges([vectors[:2], vectors[2:], vectors[:0]])
    assert (ranges == [vectors.min(0), vectors.max(0)]).all()
    found = restored(quantized(vectors, "int8", ranges), "int8", 12, ranges)
    assert (np.abs(found - vectors) <= (ranges[1] - ranges[0]) / 255 * 0.51).all()
    for bits in ("binary", "ubinary"):
        assert (restored(quantized(vectors, bits), bits, 12) == np.where(vectors > 0, 1, -1)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantized(drawn(1, rows=1), "int8"), r"int8 of 1 vector: .*calibration set"),
        (lambda: calibrated(drawn(1)[0], 12), r"int8 of 1 vector: .*calibration set"),
        (lambda: calibrated(drawn(1), 8), "calibration: its vectors have 12 dimensions; expected 8"),
        (lambda: named_quantize("int4"), "quantize 'int4': expected float32, int8, binary, ubinary"),
        (lambda: checked_dim(0, 32), "vectors have 32 dimensions; expected 1 to 32"),
        (lambda: checked_dim(33, 32), "vectors have 32 dimensions; expected 1 to 32"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
