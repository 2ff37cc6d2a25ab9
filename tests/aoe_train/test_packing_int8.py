"""int8 linear layers, notes on slow precisions, and quantized vectors."""

import re

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from aoe_train import encode, train
from aoe_train.model import precision as _precision
from aoe_train.model.backbones.packed_bert import PackedBert
from aoe_train.model.precision import (
    Int8Linear,
    choose_precision,
    largest_weight_code,
    slow_precision,
    to_codes,
    training_note,
    weights_dtype,
)
from aoe_train.model.quantization import quantized, restored, value_ranges
from tests.aoe_train.test_objectives_mix import seeds
from tests.aoe_train.tiny import load
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    table,
)

CPU = torch.device("cpu")
TEXTS = [
    "the man is playing",
    "a dog",
    "the old city and the small red boat",
    "x",
    "a cat " * 20,
]


@table(
    """
    rows, least, zero, expected, scale
    # 63.5 goes up
    [[1, -2, 0.5], [0, 0, 0], [3, 3, -1]] | {} | 128 | [[64, -127, 32], [0, 0, 0], [127, 127, -42]] | 0.01574803
    [[-0.5, 0, 2.05], [-0.5, -0.5, -0.5]] | {'lower': -0.5} | 0 | [[0, 50, 255], [0, 0, 0]] | 0.01
    """,
)
def test_codes_of_a_row_by_hand(rows, least, zero, expected, scale):
    codes, found, scales, shape = to_codes(torch.tensor(rows), **least)
    assert (found, (codes.int() - found).tolist()) == (zero, expected)
    assert scales[0, 0].item() == approx(scale, rel=1e-5)
    assert shape == (len(rows),)


def test_products_of_whole_numbers_are_exact():
    torch.manual_seed(0)
    plain = nn.Linear(40, 24)
    rows = torch.randint(-127, 128, (2, 9, 40)).float()
    rows[..., 0] = 127
    with torch.no_grad():
        top = largest_weight_code()  # so that a weight is its own code
        plain.weight.copy_(torch.randint(-top, top + 1, (24, 40)))
        plain.weight[:, 0] = top
        assert torch.allclose(Int8Linear(plain)(rows), plain(rows), rtol=1e-5, atol=0.1)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(0, 39), st.floats(-1e4, 1e4, width=32))
def test_rows_do_not_depend_on_each_other(count, place, loud):
    torch.manual_seed(count)
    layer, rows = Int8Linear(nn.Linear(24, 16)), torch.randn(count, 24)
    place %= count
    others = rows * loud
    others[place] = rows[place]
    with torch.inference_mode():
        assert torch.equal(layer(rows[[place]])[0], layer(others)[place])


@parametrize("only", [True, False])
def test_vectors_do_not_depend_on_the_batch(minilm, only):
    encoder = load(minilm, precision="int8", inference_only=only)
    assert isinstance(encoder.model.backbone, PackedBert) == only
    many = [f"the {number}th of many texts" for number in range(30)]
    texts = [*TEXTS, *many, "long " * 400]
    together = encoder.encode(texts)
    alone = np.stack([encoder.encode(text) for text in texts[:5]])
    # Sums in another order may turn a code.
    assert np.abs(together[:5] - alone).max() < 5e-3
    exact = load(minilm, precision="fp32", inference_only=True).encode(texts)
    cosines = (together * exact).sum(1)
    assert cosines.min() > 0.98
    assert cosines.mean() < 1 - 1e-5  # it is int8 that ran


def test_int8_is_only_for_encoding(bert, tmp_path):
    encoder = load(bert, precision="int8")
    with config_error("in int8 or with inference_only can't be saved"):
        encoder.save(tmp_path / "copy")
    given = {"backbone": str(bert), "precision": "int8"}
    with config_error(r"precision.*'auto', 'fp32', 'bf16' or 'fp16'"):
        train([("a dog", "a cat", 1)], out=tmp_path / "m", **given)
    (tmp_path / "t.txt").write_text("a dog\na cat\n")
    how = {"model": bert, "out": tmp_path / "v.npy"}
    encode(tmp_path / "t.txt", precision="int8", **how)
    with config_error(r"other settings: .*precision"):
        encode(tmp_path / "t.txt", precision="fp32", **how)


# Times of fp32: of plain AVX-512 4.8, of no consequence 1.1, of AMX 0.14.
@table(
    """
    wanted, device, times, told
    bf16 | cpu | 4.8 | products take 4.8 times as long in bf16 as in fp32 .* fp32 is faster
    bf16 | cpu | 1.1 | None
    bf16 | cpu | 0.14 | None
    bf16 | cuda | 4.8 | None
    auto | cpu | 4.8 | None
    auto | cpu | 1.1 | None
    auto | cuda | 0.14 | None
    auto | cpu | 0.14 | in fp32, .* take 0.14 of the time in bf16: --precision bf16
    """,
)
def test_notes_on_the_precision_of_training(wanted, device, times, told, monkeypatch):
    monkeypatch.setattr(_precision, "product_time", lambda _: times)
    monkeypatch.setattr(_precision, "_cpu_has_bf16", lambda: True)
    device = torch.device(device)
    found = training_note(wanted, device)
    assert (found is None) if told is None else re.search(told, found or "")
    # Encoding is told of slow ones alone.
    slow = slow_precision(wanted, device)
    assert slow == (None if wanted == "auto" else found)


@table(
    """
    flags, by_onednn, computed
    {'avx2': True} | False | fp32
    # oneDNN would emulate it
    {'avx512_f': True, 'avx512_bf16': False} | True | fp32
    {'avx512_bf16': True} | True | bf16
    {'amx_bf16': True} | True | bf16
    # a build or setting that hides the instructions
    {'avx512_bf16': True} | False | fp32
    {'neon': True, 'bf16': True} | True | bf16
    """,
)
def test_a_processor_without_bf16_computes_in_fp32(
    flags, by_onednn, computed, monkeypatch
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: flags)
    monkeypatch.setattr(_precision, "onednn_has_bf16", lambda: by_onednn)
    uncached = _precision._cpu_has_bf16.__wrapped__
    monkeypatch.setattr(_precision, "_cpu_has_bf16", uncached)
    assert choose_precision("bf16", CPU) == computed
    assert weights_dtype("bf16", CPU) == _precision.DTYPES[computed]
    note = slow_precision("bf16", CPU) or ""
    assert ("computing in fp32" in note) == (computed == "fp32")


@table(
    """
    int8, bf16, told
    0.3 | 4.0 | None
    0.3 | 0.2 | 0.30 of fp32's time in int8 and 0.20 in bf16 .*--precision bf16 is faster
    1.1 | 4.0 | 1.1 times as long in int8 as in fp32
    """,
)
def test_notes_on_int8(int8, bf16, told, monkeypatch):
    monkeypatch.setattr(
        _precision, "product_time", {torch.int8: int8, torch.bfloat16: bf16}.__getitem__
    )
    found = slow_precision("int8", CPU)
    assert (found is None) if told is None else re.search(told, found or "")


def drawn(seed, dim=12):
    return np.random.default_rng(seed).normal(size=(7, dim)).astype(np.float32)


def test_constant_dimensions():
    vectors = np.float32([[3, 1], [3, 2]])
    codes = quantized(vectors, "int8")
    assert codes[:, 0].tolist() == [-128, -128]
    assert restored(codes, "int8", 2, value_ranges([vectors]))[:, 0].tolist() == [3, 3]
    with data_error("NaN or infinity"):
        value_ranges([vectors, vectors * np.nan])


@parametrize("quantize", ["float32", "int8", "binary", "ubinary"])
@settings(max_examples=30)
@given(seed=seeds, dim=st.integers(1, 20))
def test_codes_equal_sentence_transformers(quantize, seed, dim):
    from sentence_transformers.util.quantization import quantize_embeddings

    vectors, calibration = drawn(seed, dim=dim), drawn(seed + 1, dim=dim)
    for known in (None, calibration):
        ranges = None if known is None else value_ranges([known])
        ours = quantized(vectors, quantize, ranges)
        theirs = quantize_embeddings(vectors, quantize, calibration_embeddings=known)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    none = quantized(vectors[:0], quantize)
    assert (none.shape, none.dtype) == ((0, ours.shape[1]), ours.dtype)


@settings(max_examples=30)
@given(seed=seeds)
def test_restored_values_are_within_half_a_step(seed):
    vectors = drawn(seed)
    ranges = value_ranges([vectors[:2], vectors[2:], vectors[:0]])
    assert (ranges == [vectors.min(0), vectors.max(0)]).all()
    found = restored(quantized(vectors, "int8", ranges), "int8", 12, ranges)
    assert (np.abs(found - vectors) <= (ranges[1] - ranges[0]) / 255 * 0.51).all()
    for bits in ("binary", "ubinary"):
        assert (
            restored(quantized(vectors, bits), bits, 12) == np.where(vectors > 0, 1, -1)
        ).all()
