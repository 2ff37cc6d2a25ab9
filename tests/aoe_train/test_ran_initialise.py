from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from aoe_train._backbones.ran import RanConfig, RanModel
from aoe_train._backbones.ran.initialise import copy_embeddings, read_embeddings
from pairkit.errors import ConfigError


def test_embeddings_are_the_encoders(bert: Path):
    embeddings = read_embeddings(bert)
    words = AutoModel.from_pretrained(bert).embeddings.word_embeddings.weight
    assert torch.equal(embeddings, words)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 4}
    model = RanModel(RanConfig(vocab_size=len(embeddings), hidden_size=32, **sizes))
    copy_embeddings(model, embeddings)
    assert torch.equal(model.embed_tokens.weight, words)
    assert model.embed_tokens.weight.requires_grad
    with pytest.raises(ConfigError, match=r"5 tokens x 32, but the RAN has \d+ x 32"):
        copy_embeddings(model, embeddings[:5])


def test_a_folder_without_a_model_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="no encoder to take embeddings from"):
        read_embeddings(tmp_path)
