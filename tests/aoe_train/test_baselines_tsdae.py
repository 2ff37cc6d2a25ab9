"""TSDAE: what goes from a text, what the decoder shares with the encoder, and what it sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._baselines.tsdae import Tsdae, damaged
from aoe_train._baselines.way import Rows, Texts
from pairkit.errors import ConfigError


def texts(*lengths: int) -> Texts:
    ids = [[2, *range(10, 10 + length), 3] for length in lengths]
    return Texts(
        torch.tensor([token for text in ids for token in text]), np.array([len(text) for text in ids])
    )


def own(batch: Texts) -> torch.Tensor:
    return ~torch.isin(batch.input_ids, torch.tensor([2, 3]))


def test_so_many_tokens_go_and_special_ones_stay():
    torch.manual_seed(1)
    found = damaged(texts(1, 2000), 0.6, own(texts(1, 2000)))
    short, long = (tokens.tolist() for tokens in found.sequences())
    assert short == [2, 10, 3]  # the last of a text stays
    assert (long[0], long[-1], sorted(long[1:-1])) == (2, 3, long[1:-1])
    assert len(long) - 2 == pytest.approx(800, abs=70)
    for share, kept in ((0.0, 7), (1.0, 3)):
        assert damaged(texts(5), share, own(texts(5))).lengths.tolist() == [kept]


def test_the_loss_is_that_of_the_decoders_tokens(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    way = Tsdae(encoder).eval()
    batch = texts(2, 4)
    torch.manual_seed(3)
    rows = Rows(torch.arange(2)[:, None], None)
    loss = way(encoder.model, batch, torch.arange(2), rows)["loss"]
    torch.manual_seed(3)
    vectors = damaged(batch, 0.6, own(batch)).vectors(encoder.model)
    total = 0.0
    for tokens, vector in zip(batch.sequences(), vectors, strict=True):  # token by token, without padding
        for place in range(1, len(tokens)):
            read = tokens[None, :place]
            logits = way.decoder(input_ids=read, encoder_hidden_states=vector[None, None]).logits[0, -1]
            total -= torch.log_softmax(logits, 0)[tokens[place]].item()
    assert loss.item() == pytest.approx(total / (3 + 5), rel=1e-4)


def test_decoder_and_encoder_are_one_but_for_what_reads_the_vector(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    way = Tsdae(encoder)
    backbone = {id(weight) for weight in encoder.model.parameters()}
    own = {name for name, weight in way.named_parameters() if id(weight) not in backbone}
    assert own
    assert all("crossattention" in name or "predictions" in name for name in own)


def test_models_without_such_a_decoder_are_refused(bert: Path, llama: Path):
    with pytest.raises(ConfigError, match="LlamaModel attends to no vector"):
        Tsdae(Encoder.load(llama, device="cpu"))
    with pytest.raises(ConfigError, match="vectors of 32 numbers"):
        Tsdae(Encoder.load(bert, device="cpu", dense=[8]))
