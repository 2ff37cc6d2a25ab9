"""Training only the used rows of an embedding gives the weights that training all of them gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel

from aoe_train.model.packing.rows import UsedRows, train_all_rows, train_used_rows

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
