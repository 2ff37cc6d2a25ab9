"""Buckets: every sequence once, in order, within the limit; grids and packed rows are inverse."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.model.packing import sequences
from aoe_train.model.packing.sequences import Sequences, best_cuts

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40).map(sorted)


def _cost(lengths: list[int], cuts: tuple[int, ...]) -> int:
    spans = itertools.pairwise((0, *cuts))
    return sum(sequences._BUCKET_COST + (b - a) * lengths[b - 1] ** 2 for a, b in spans)


@given(LENGTHS)
def test_buckets_hold_each_sequence_once(lengths: list[int]) -> None:
    found = Sequences(lengths, torch.device("cpu")).buckets
    assert [length for bucket in found for length in bucket.lengths] == lengths
    assert [b.first for b in found] == [0, *itertools.accumulate(b.tokens for b in found)][:-1]


def test_where_the_limit_parts_equal_lengths_cuts_cost_little_more_than_the_least() -> None:
    lengths = [286, 296, 296, 296]
    assert best_cuts(lengths) == [1, 3, 4]
    assert _cost(lengths, (1, 3, 4)) < 1.001 * _cost(lengths, (2, 4))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=7, unique=True).map(sorted))
def test_cuts_cost_the_least(lengths: list[int]) -> None:
    inner = range(1, len(lengths))
    every = [(*cut, len(lengths)) for n in range(len(lengths)) for cut in itertools.combinations(inner, n)]
    allowed = [
        cut
        for cut in every
        if all(
            b - a == 1 or (b - a) * lengths[b - 1] ** 2 <= sequences._BUCKET_LIMIT
            for a, b in itertools.pairwise((0, *cut))
        )
    ]
    assert _cost(lengths, tuple(best_cuts(lengths))) == min(_cost(lengths, cut) for cut in allowed)


def test_long_runs_are_cut_at_the_limit() -> None:
    cuts = best_cuts([512] * 10)
    assert cuts == list(range(1, 11))
    assert best_cuts([128] * 40) == [16, 32, 40]


@given(LENGTHS)
def test_heads_and_put_heads_are_inverse(lengths: list[int]) -> None:
    packed = torch.randn(sum(lengths), 2, 3)
    copy = torch.zeros_like(packed)
    for bucket in Sequences(lengths, torch.device("cpu")).buckets:
        bucket.put_heads(bucket.heads(packed), copy)
    assert torch.equal(copy, packed)


@given(LENGTHS)
def test_heads_are_the_grid_with_its_heads_apart(lengths: list[int]) -> None:
    packed = torch.randn(sum(lengths), 2, 3)
    for bucket in Sequences(lengths, torch.device("cpu")).buckets:
        heads = bucket.heads(packed, zeros=True).view(bucket.size, 2, bucket.length, 3)
        assert torch.equal(heads.transpose(1, 2), bucket.grid(packed))


def test_padding_repeats_a_sequences_last_token_where_it_does_not_matter() -> None:
    packed = torch.arange(1.0, 6.0).view(5, 1, 1)
    (bucket,) = Sequences([1, 2, 2], torch.device("cpu")).buckets
    assert bucket.heads(packed).flatten().tolist() == [1, 1, 2, 3, 4, 5]
    assert bucket.heads(packed, zeros=True).flatten().tolist() == [1, 0, 2, 3, 4, 5]


def test_positions_begin_anew_in_each_sequence() -> None:
    assert Sequences([1, 3, 3], torch.device("cpu")).positions.tolist() == [0, 0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("causal", "window", "seen"),
    [
        (False, None, [[1, 1, 0], [1, 1, 0], [1, 1, 1]]),
        (True, None, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (False, 1, [[1, 0, 0], [0, 1, 0], [1, 1, 1]]),
    ],
)
def test_bias_hides_padding_later_and_distant_keys(causal: bool, window: int | None, seen: list) -> None:
    (bucket,) = Sequences([2, 3], torch.device("cpu")).buckets
    bias = bucket.bias(causal=causal, window=window, dtype=torch.float32)
    assert bias is not None
    assert (bias[0, 0] == 0).int().tolist() == seen


def test_an_accelerators_bias_has_aligned_rows() -> None:
    (bucket,) = Sequences([17, 19], torch.device("meta")).buckets
    bias = bucket.bias(causal=False, window=None, dtype=torch.bfloat16)
    assert bias is not None
    assert bias.shape == (2, 1, 19, 19)
    assert bias.stride() == (19 * 32, 19 * 32, 32, 1)


def test_equal_lengths_need_no_bias() -> None:
    (bucket,) = Sequences([4, 4], torch.device("cpu")).buckets
    assert bucket.bias(causal=False, window=None, dtype=torch.float32) is None
    assert bucket.bias(causal=False, window=4, dtype=torch.float32) is None
