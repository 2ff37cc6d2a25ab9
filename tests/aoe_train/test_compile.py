"""`run.compile`: compiled once for batches of all lengths, and the same figures."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from transformers import AutoModel

from tests.aoe_train.test_no_waiting import batch, pair_model

LENGTHS = ([3, 5, 9], [4, 6, 6, 7], [5, 5, 8], [2, 7, 11, 12, 12], [3, 4, 6])


@pytest.mark.parametrize("which", ["bert", pytest.param("llama", marks=pytest.mark.slow)])
def test_batches_of_other_lengths_are_not_compiled_anew(which: str, request: pytest.FixtureRequest) -> None:
    backbone = AutoModel.from_pretrained(request.getfixturevalue(which)).eval()  # without dropout
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
        losses = [each(**given)["loss"] for each in (compiled, model)]
        gradients = [torch.autograd.grad(loss, backbone.get_input_embeddings().weight) for loss in losses]
        torch.testing.assert_close(losses[0], losses[1])
        torch.testing.assert_close(gradients[0], gradients[1])
        counts.append(counter.frame_count)
    assert counts[0] > 0
    assert counts[1] == counts[-1]  # the second batch shows that lengths differ
