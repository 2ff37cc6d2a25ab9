"""`run.compile`: compiled once for batches of all lengths, and the same figures."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from transformers import AutoModel

from aoe_train.model.packing import flash, sequences
from tests.aoe_train.test_no_waiting import batch, pair_model

LENGTHS = ([3, 5, 9], [4, 6, 6, 7], [2, 7, 11, 12, 12])


def attended(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bounds: torch.Tensor,
    longest: int,
    scaling: float,
    _dropout: float,
    *,
    causal: bool,
    window: int | None,
) -> torch.Tensor:
    """What FlashAttention computes, by a mask."""
    assert window is None
    place = torch.arange(len(query))
    sequence = torch.searchsorted(bounds[1:].long(), place, right=True)
    seen = sequence[:, None] == sequence
    if causal:
        seen = seen & (place[:, None] >= place)
    q, k, v = (part.transpose(0, 1) for part in (query, key, value))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scaling)
    return out.transpose(0, 1) + query.new_zeros(longest).sum()  # the kernel is told how long the longest is


def test_with_flash_attention_a_backbone_is_one_graph(shallow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "has_flash", lambda _: True)
    monkeypatch.setattr(flash, "_kernel", attended)
    counts = frames(shallow, autocast=True)
    assert counts[0] == 2  # backbone and pooling, where it is parted at each layer's attention without it
    assert counts[1] == counts[-1]


def frames(folder: Any, *, autocast: bool = False) -> list[int]:
    """How many parts were compiled by the end of each batch; results are those of plain Python."""
    backbone = AutoModel.from_pretrained(folder).eval()  # without dropout
    model = pair_model(backbone, "avg", "aoe")
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter)
    counts = []
    for number, lengths in enumerate(LENGTHS):
        generator = torch.Generator().manual_seed(number)
        given = batch(lengths) | {
            "input_ids": torch.randint(5, 30, (sum(lengths),), generator=generator),
            "rows": torch.randint(0, len(lengths), (8, 2), generator=generator),
            "texts": torch.arange(len(lengths)),
            "labels": torch.arange(8) / 8,
        }
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            losses = [each(**given)["loss"] for each in (compiled, model)]
        gradients = [torch.autograd.grad(loss, backbone.get_input_embeddings().weight) for loss in losses]
        torch.testing.assert_close(losses[0], losses[1])
        torch.testing.assert_close(gradients[0], gradients[1])
        counts.append(counter.frame_count)
    torch.compiler.reset()
    return counts
