"""Buckets of packed sequences, and training only the used rows of an embedding."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel

from aoe_train.model.packing import sequences
from aoe_train.model.packing.layers import UsedRows, train_all_rows, train_used_rows
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


USED = np.array([2, 3, 5, 9, 12])


def _model(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()


def _trained(folder: Path, rows: bool) -> Any:
    model = _model(folder).train()
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    assert not rows or train_used_rows(model, USED)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        ids = torch.from_numpy(USED)[torch.randint(len(USED), (2, 6), generator=generator)]
        model(input_ids=ids).last_hidden_state.sin().sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model


def test_the_same_weights_come_out(bert: Path) -> None:
    all_rows, used_rows = _trained(bert, rows=False), _trained(bert, rows=True)
    assert isinstance(used_rows.get_input_embeddings(), UsedRows)
    ours = used_rows.state_dict()
    for name, weight in all_rows.state_dict().items():
        assert torch.allclose(weight, ours[name], atol=1e-6), name
    train_all_rows(used_rows)
    assert type(used_rows.get_input_embeddings()) is torch.nn.Embedding
    assert torch.equal(used_rows.get_input_embeddings().weight, ours["embeddings.word_embeddings.weight"])


def test_other_tokens_can_be_read_in_evaluation(bert: Path) -> None:
    plain, model = _model(bert), _model(bert)
    train_used_rows(model, USED)
    ids = torch.arange(20)[None]
    assert torch.equal(model(input_ids=ids).last_hidden_state, plain(input_ids=ids).last_hidden_state)


def test_a_whole_state_dict_goes_in_and_comes_out(bert: Path) -> None:
    source, model = _model(bert), _model(bert)
    train_used_rows(model, USED)
    with torch.no_grad():
        source.get_input_embeddings().weight.mul_(2)
    model.load_state_dict(source.state_dict())
    assert torch.equal(model.get_input_embeddings().whole(), source.get_input_embeddings().weight)


def test_a_frozen_embedding_is_left_alone(bert: Path) -> None:
    model = _model(bert).requires_grad_(requires_grad=False)
    assert not train_used_rows(model, USED)
    assert type(model.get_input_embeddings()) is torch.nn.Embedding
