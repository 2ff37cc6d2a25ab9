"""DiffCSE: what is edited, who is told what, and generators that are none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from aoe_train import Encoder
from aoe_train._baselines.diffcse import DiffCse
from aoe_train._baselines.way import Rows, Texts, TrainedOn
from aoe_train._preparation import _recompute_layers
from pairkit.errors import ConfigError
from tests.aoe_train.tiny import save_generator

CLS, SEP, MASK = 2, 3, 4


@pytest.fixture
def generator(bert: Path, tmp_path: Path) -> str:
    save_generator(bert, tmp_path / "generator")
    return str(tmp_path / "generator")


class Says(nn.Module):
    """A generator that fills each mask with token 9 and says the rest as it is; remembers what it read."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        self.read, self.seen = input_ids, attention_mask
        said = torch.where(input_ids == MASK, 9, input_ids)
        return SimpleNamespace(logits=nn.functional.one_hot(said, 90).float())


def test_masked_tokens_alone_are_replaced_and_told(bert: Path, generator: str):
    way = DiffCse(Encoder.load(bert, device="cpu"), TrainedOn(generator=generator))
    way.generator = Says()
    ids = torch.full((2, 1002), -100)
    ids[0] = torch.tensor([CLS, *[7] * 1000, SEP])
    ids[1, :4] = torch.tensor([CLS, 9, 9, SEP])
    torch.manual_seed(0)
    edited, replaced = way.edited(ids, (ids > CLS + 1))
    masked = way.generator.read == MASK
    assert masked[0].sum() == pytest.approx(300, abs=45)
    assert not masked[:, [0]].any()
    assert torch.equal(edited[0] == 9, masked[0])
    assert torch.equal(replaced[0].bool(), masked[0])
    assert replaced[1, :4].tolist() == [0, 0, 0, 0]  # said again as it was
    assert (replaced[1, 4:] == -100).all()
    assert (edited[1, 4:] == -100).all()
    assert way.generator.seen.sum(1).tolist() == [1002, 4]


def test_its_loss_is_the_sum_of_its_parts_and_the_vector_matters(bert: Path, generator: str):
    encoder = Encoder.load(bert, device="cpu")
    way = DiffCse(encoder, TrainedOn(generator=generator)).train()
    assert not way.generator.training
    lengths = np.array([4, 6])
    texts = Texts(torch.tensor([CLS, 8, 9, SEP, CLS, 10, 11, 12, 13, SEP]), lengths)
    found = way(encoder.model.train(), texts, torch.arange(2), Rows(torch.arange(2)[:, None], None))
    assert found["loss"].item() == pytest.approx((found["contrastive"] + 0.005 * found["replaced"]).item())
    found["loss"].backward()
    learns = {name for name, weight in way.named_parameters() if weight.requires_grad}
    assert not any(name.startswith("generator") for name in learns)
    assert way.head.weight.grad is not None
    ids = torch.tensor([[CLS, 8, 9, SEP]])
    way.eval()
    told = [way._told(ids, vector) for vector in (torch.zeros(1, 32), torch.ones(1, 32))]
    assert not torch.allclose(*told)
    assert torch.equal(told[0], way._told(ids.masked_fill(ids == CLS, 30), torch.zeros(1, 32)))


def test_layers_may_be_run_again(bert: Path, generator: str):
    encoder = Encoder.load(bert, device="cpu")
    ids, vector = torch.tensor([[CLS, 8, 9, SEP, -100]]), torch.zeros(1, 32)
    expected = (
        DiffCse(encoder, TrainedOn(generator=generator))
        .eval()
        .discriminator(ids.clamp_min(0), (ids >= 0).long())
    )
    _recompute_layers(encoder)
    way = DiffCse(encoder, TrainedOn(generator=generator)).eval()
    found = way.discriminator(ids.clamp_min(0), (ids >= 0).long())
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state)
    assert way._told(ids, vector).isfinite().all()


def test_generators_that_are_none_are_refused(bert: Path, minilm: Path, llama: Path, generator: str):
    encoder = Encoder.load(bert, device="cpu")
    with pytest.raises(ConfigError, match=r"--set objective\.generator="):
        DiffCse(encoder)
    with pytest.raises(ConfigError, match="has no head that says which token"):
        DiffCse(encoder, TrainedOn(generator=str(bert)))
    with pytest.raises(ConfigError, match="no masked language model"):
        DiffCse(encoder, TrainedOn(generator=str(llama)))
    damaged = Path(generator) / "model.safetensors"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    with pytest.raises(ConfigError, match="no masked language model"):
        DiffCse(encoder, TrainedOn(generator=generator))
    damaged.write_bytes(whole)
    with pytest.raises(ConfigError, match="another vocabulary"):
        DiffCse(Encoder.load(minilm, device="cpu"), TrainedOn(generator=generator))
    with pytest.raises(ConfigError, match=r"no \[CLS\] and \[MASK\]"):
        DiffCse(Encoder.load(llama, device="cpu"), TrainedOn(generator=generator))
