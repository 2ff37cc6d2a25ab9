"""The first layers of a model: the same vectors as in training and in sentence-transformers."""

import numpy as np
import torch

from aoe_train import encode, evaluate, export
from aoe_train.model.backbones.changes import after_layers, count_layers
from tests.aoe_train.test_dense_layers import ROWS, fit
from tests.aoe_train.tiny import (
    card_of,
    difference,
    load,
    save_bert,
    save_gemma,
    save_llama,
    save_t5,
    sentence_transformer,
)
from tests.support.shorthand import (
    config_error,
    module_fixture,
    table,
    values,
)

TEXTS = [
    "a cat is playing",
    "the dog",
    "a large blue car is on the road with a small bird",
]
SAVE = {"bert": save_bert, "llama": save_llama, "gemma": save_gemma, "t5": save_t5}


@table(
    """
    name, pooling
    bert | first-last-avg
    llama | avg
    gemma | first-last-avg
    t5 | avg
    """,
)
def test_vectors_of_a_layer_equal_a_model_cut_there(name, pooling, tmp_path):
    folder = SAVE[name](tmp_path / "m", layers=3)
    whole = load(folder, pooling=pooling)
    whole.model.set_final_norm(after_layers(whole.model.backbone))
    batch = whole.tokens(TEXTS).batch(np.arange(3))
    with torch.no_grad():
        found = whole.model(batch["input_ids"], batch["lengths"], layers=(1, 2))
    for number in (1, 2):
        cut = load(folder, pooling=pooling, layers=number)
        assert layers_of(cut) == count_layers(cut.model.backbone) == number
        assert difference(found[:, number - 1].numpy(), cut.encode(TEXTS)) < 1e-6
    cut.save(tmp_path / "cut")
    assert difference(load(tmp_path / "cut").encode(TEXTS), cut.encode(TEXTS)) < 1e-6
    if name != "llama":  # its tokenizer has no padding token
        theirs = sentence_transformer(tmp_path / "cut").encode(TEXTS)
        assert difference(theirs, cut.encode(TEXTS)) < 1e-6


def layers_of(encoder):
    return int(encoder.model.backbone.config.num_hidden_layers)


def test_layers_of_a_packed_bert(bert):
    one = load(bert, layers=1, inference_only=True).encode(TEXTS)
    assert (one == load(bert, layers=1).encode(TEXTS)).all()
    assert (one != load(bert).encode(TEXTS)).any()
    assert (one == encode(TEXTS, model=bert, layers=1)).all()


@module_fixture
def three(tmp_path_factory):
    """A BERT of three layers without dropout."""
    return save_bert(tmp_path_factory.mktemp("three") / "bert", layers=3, dropout=0)


def test_adapters_of_some_layers(three, out, tmp_path):
    settings = {"encoder.layers": 2, "lora.rank": 2}
    run = fit(three, out, lora=True, settings=settings)
    again = load(out)
    assert layers_of(again) == 2
    assert (again.encode(TEXTS) == run.encoder.encode(TEXTS)).all()
    theirs = sentence_transformer(out, trust_remote_code=True)
    assert difference(theirs.encode(TEXTS), again.encode(TEXTS)) < 1e-6
    assert export(out, out=tmp_path / "one", layers=1).merged
    assert "## Settings" in card_of(out)
    assert "## Settings" not in card_of(tmp_path / "one")  # and scores of all layers
    assert layers_of(load(tmp_path / "one")) == 1


def test_one_table_of_layers_and_sizes(bert):
    options = {"data": ROWS, "resamples": 0}
    table = evaluate(bert, layers="2,1", dim=[32, 8], **options)
    told = table.to_dict()["sizes"]
    sizes = [(one["layers"], one["dim"]) for one in told]
    assert sizes == values("""
        2 | 32
        2 | 8
        1 | 32
        1 | 8
    """)
    assert [*table.to_polars()["layers"].unique().sort()] == [1, 2]
    (grid,) = table.tables()
    assert "layers" in str(grid)
    alone = evaluate(bert, dim=[32, 8], **options).to_dict()["sizes"]
    assert [one["tasks"] for one in told[:2]] == [one["tasks"] for one in alone]
    assert told[2]["tasks"] != told[0]["tasks"]
    assert "layers" not in alone[0]
    for model, given, message in values(
        """
            m | {'layers': 1, 'endpoint': 'http://127.0.0.1:1/v1'} | can't be set for an endpoint
            BERT | {'quantize': 'int4'} | quantize = 'int4': expected
            BERT | {'dim': 64} | dim 64: this model's vectors have 32 dimensions
            BERT | {'dim': 8, 'against': 'minilm'} | against= compares full vectors
            LOADED | {'layers': 1} | layers=1: can't be set for a loaded model
            LOADED | {'precision': 'bf16'} | precision='bf16': can't be set for a loaded model
            """,
        BERT=bert,
        LOADED=load(bert),
    ):
        with config_error(message):
            evaluate(model, **given, **options)


@table(
    """
    name, layer, after
    bert | encoder.layer.2. | ()
    t5 | encoder.block.2. | ('encoder.final_layer_norm.',)
    gemma | layers.2. | ('norm.',)
    """,
)
def test_only_the_last_layers_learn(name, layer, after, tmp_path):
    backbone = SAVE[name](tmp_path / "m", layers=3)
    fit(backbone, tmp_path / "out", top_layers=1, settings={"optim.average": 0})
    before, found = (load(tmp_path / folder).model.backbone for folder in ("m", "out"))
    moved = {
        key
        for key, weight in found.named_parameters()
        if (weight != before.get_parameter(key)).any()
    }
    assert moved
    assert all(key.startswith((layer, *after)) for key in moved), moved
    assert any(key.startswith(after) for key in moved) or not after
