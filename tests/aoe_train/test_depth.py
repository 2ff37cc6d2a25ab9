"""The first layers of a model: the same vectors as training gives them, for sentence-transformers too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from torch import nn

import aoe_train
from aoe_train import Encoder
from aoe_train.exporting.export import difference
from aoe_train.model.backbones.depth import after_layers, count_layers, keep_layers
from aoe_train.training.trainer import PairTrainer
from pairkit.app.errors import ConfigError
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_dense_layers import ROWS
from tests.aoe_train.test_text_model import MODELS
from tests.aoe_train.tiny import save_bert, save_gemma, save_llama, save_t5

TEXTS = ["a cat is playing", "the dog", "a large blue car is on the road with a small bird"]
SAVE: dict[str, Callable[..., Path]] = {
    "bert": save_bert,
    "llama": save_llama,
    "gemma": save_gemma,
    "t5": save_t5,
}
DEEP = {
    "preset": "cosent",
    "epochs": 2,
    "batch_size": 4,
    "lr": 1e-3,
    "progress": False,
    "layers": "all",
    "dims": [32, 8],
    "settings": {"objective.align": 0.5, "log.checkpoint_steps": 1},
}


@pytest.mark.parametrize(
    ("name", "pooling"),
    [("bert", "first-last-avg"), ("llama", "avg"), ("gemma", "first-last-avg"), ("t5", "avg")],
)
def test_a_layer_in_training_is_a_model_that_ends_there(name: str, pooling: str, tmp_path: Path) -> None:
    folder = SAVE[name](tmp_path / "m", layers=3)
    options: dict[str, Any] = {"device": "cpu", "pooling": pooling}
    whole = Encoder.load(folder, **options)
    whole.model.learn_layers(after_layers(whole.model.backbone))
    batch = whole.tokens(TEXTS).batch(np.arange(3))
    with torch.no_grad():
        found = whole.model(batch["input_ids"], batch["lengths"], batch["pieces"], layers=(1, 2))
    assert found.shape == (3, 3, 32)
    for number in (1, 2, 3):
        cut = Encoder.load(folder, layers=number, **options)
        assert count_layers(cut.model.backbone) == number
        assert difference(found[:, number - 1].numpy(), cut.encode(TEXTS)) < 1e-6
        cut.save(tmp_path / f"{number}")
        again = Encoder.load(tmp_path / f"{number}", device="cpu")
        assert difference(again.encode(TEXTS), cut.encode(TEXTS)) < 1e-6
    if name != "llama":  # whose tokenizer has nothing to pad with
        theirs = SentenceTransformer(str(tmp_path / "2"), device="cpu").encode(TEXTS)
        assert difference(theirs, found[:, 1].numpy()) < 1e-6


@pytest.mark.parametrize("name", ["modernbert", "mistral", "distilbert", "roberta"])
def test_what_comes_after_the_last_layer_is_asked_of_the_backbone(name: str) -> None:
    backbone = MODELS[name]()
    norm = after_layers(backbone)
    assert (norm is None) is (name in ("distilbert", "roberta"))
    hidden = backbone(input_ids=torch.arange(5, 12)[None], output_hidden_states=True).hidden_states
    keep_layers(backbone, 1)
    cut = backbone.eval()(input_ids=torch.arange(5, 12)[None]).last_hidden_state
    if name in ("modernbert", "mistral"):  # the others have dropout
        assert norm is not None
        assert torch.allclose(norm(hidden[1]), cut, atol=1e-5)


def test_a_bert_without_transformers_code_is_cut_too(bert: Path) -> None:
    one = Encoder.load(bert, device="cpu", layers=1, inference_only=True).encode(TEXTS)
    assert (one == Encoder.load(bert, device="cpu", layers=1).encode(TEXTS)).all()
    assert (one != Encoder.load(bert, device="cpu").encode(TEXTS)).any()
    assert (one == aoe_train.encode(TEXTS, model=bert, layers=1, progress=False)).all()


@pytest.mark.parametrize("count", [0, 3])
def test_layers_that_there_are_not(bert: Path, count: int) -> None:
    with pytest.raises(ConfigError, match=r"layers 3: this backbone has 2|greater than or equal to 1"):
        Encoder.load(bert, device="cpu", layers=count)


def test_backbones_without_a_list_of_layers() -> None:
    backbone = MODELS["roberta"]()
    backbone.config.num_hidden_layers = 7
    with pytest.raises(ConfigError, match="has no list of layers"):
        count_layers(backbone)


def test_a_backbone_that_does_more_than_a_norm_at_its_end() -> None:
    backbone = MODELS["mistral"]()
    backbone.norm = nn.Sequential(backbone.norm, nn.Tanh())
    with pytest.raises(ConfigError, match="does more than a norm after its last layer"):
        after_layers(backbone)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of three layers without dropout."""
    return save_bert(tmp_path_factory.mktemp("three") / "bert", layers=3, dropout=0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_a_killed_run_ends_as_the_whole_one(three: Path, tmp_path: Path, kill_at: Any) -> None:
    run = aoe_train.train(ROWS, backbone=three, out=tmp_path / "whole", **DEEP)
    logged = run.record["history"][-1]
    assert {"layer_1", "layer_2", "loss_8", "align"} <= logged.keys()
    kill_at(3)
    with pytest.raises(Killed):
        aoe_train.train(ROWS, backbone=three, out=tmp_path / "killed", **DEEP)
    aoe_train.train(ROWS, backbone=three, out=tmp_path / "killed", **DEEP)
    whole, killed = (weights(tmp_path / name) for name in ("whole", "killed"))
    assert all((whole[name] == killed[name]).all() for name in whole)
    assert "Layers" in (tmp_path / "whole/README.md").read_text()


def test_chunks_have_the_gradient_of_the_whole_batch(
    three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first step: the optimiser makes a whole step of what rounding leaves of a gradient of 0."""
    found: list[torch.Tensor] = []
    original = PairTrainer.clip_gradients

    def clip_gradients(self: PairTrainer, model: nn.Module) -> torch.Tensor:
        found.append(torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None]).clone())
        return original(self, model)

    monkeypatch.setattr(PairTrainer, "clip_gradients", clip_gradients)
    for chunk in (None, 2):
        settings = {**DEEP["settings"], "run.chunk": chunk}
        options = {**DEEP, "settings": settings, "epochs": 0.1}
        aoe_train.train(ROWS, backbone=three, out=tmp_path / f"{chunk}", **options)
    whole, chunks = found
    assert whole.norm() > 0.1
    assert (chunks - whole).norm() < 1e-5 * whole.norm()


def test_layers_of_next_to_no_weight_change_nothing(three: Path, tmp_path: Path) -> None:
    plain = {**DEEP, "layers": None, "dims": None, "settings": {}}
    aoe_train.train(ROWS, backbone=three, out=tmp_path / "plain", **plain)
    little = {**plain, "layers": [1], "settings": {"objective.layer_weights": "1e-12"}}
    aoe_train.train(ROWS, backbone=three, out=tmp_path / "little", **little)
    one, other = weights(tmp_path / "plain"), weights(tmp_path / "little")
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)
    much = {**little, "settings": {}}
    aoe_train.train(ROWS, backbone=three, out=tmp_path / "much", **much)
    learnt = weights(tmp_path / "much")
    assert any(not torch.allclose(one[name], learnt[name], atol=1e-3) for name in one)


@pytest.mark.parametrize("layers", ["3", [1, 5], "all"])
def test_layers_that_cannot_learn(layers: Any, three: Path, tmp_path: Path) -> None:
    source = save_bert(tmp_path / "one", layers=1) if layers == "all" else three
    with pytest.raises(ConfigError, match=r"objective.layers .*of which the last learns in any case"):
        aoe_train.train(ROWS, backbone=source, out=tmp_path / "m", **{**DEEP, "layers": layers})


def test_adapters_of_some_layers(three: Path, tmp_path: Path) -> None:
    settings = {"encoder.layers": 2, "lora.rank": 2}
    options = {**DEEP, "layers": None, "dims": None, "settings": settings}
    run = aoe_train.train(ROWS, backbone=three, out=tmp_path / "m", lora=True, **options)
    again = Encoder.load(tmp_path / "m", device="cpu")
    assert count_layers(again.model.backbone) == 2
    assert (again.encode(TEXTS) == run.encoder.encode(TEXTS)).all()
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu", trust_remote_code=True)
    assert difference(theirs.encode(TEXTS), again.encode(TEXTS)) < 1e-6
    done = aoe_train.export(tmp_path / "m", out=tmp_path / "one", layers=1, progress=False)
    assert done.merged
    assert count_layers(Encoder.load(tmp_path / "one", device="cpu").model.backbone) == 1


def test_one_table_of_layers_and_sizes(bert: Path) -> None:
    options: dict[str, Any] = {"data": ROWS, "resamples": 0, "cache": False, "progress": False}
    table = aoe_train.evaluate(bert, layers="2,1", dim=[32, 8], **options)
    told = table.to_dict()["sizes"]
    assert [(one["layers"], one["dim"]) for one in told] == [(2, 32), (2, 8), (1, 32), (1, 8)]
    assert [*table.to_polars()["layers"].unique().sort()] == [1, 2]
    (grid,) = table.tables()
    assert "layers" in str(grid)
    alone = aoe_train.evaluate(bert, dim=[32, 8], **options).to_dict()["sizes"]
    assert [one["tasks"] for one in told[:2]] == [one["tasks"] for one in alone]
    assert told[2]["tasks"] != told[0]["tasks"]
    assert "layers" not in alone[0]
    with pytest.raises(ConfigError, match="an endpoint runs all layers"):
        aoe_train.evaluate("m", layers=1, endpoint="http://127.0.0.1:1/v1", **options)
    with pytest.raises(ConfigError, match="--layers: one is given twice"):
        aoe_train.evaluate(bert, layers=[1, 1], **options)
    with pytest.raises(ConfigError, match="this Encoder is loaded already"):
        aoe_train.evaluate(Encoder.load(bert, device="cpu"), layers=1, **options)


@pytest.mark.parametrize("name", ["bert", "t5", "gemma"])
def test_the_last_layers_learn_alone(name: str, tmp_path: Path) -> None:
    backbone = SAVE[name](tmp_path / "m", layers=3)
    how = {**DEEP, "layers": None, "dims": None, "settings": {"optim.average": 0}}
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "out", top_layers=1, **how)
    before, after = (Encoder.load(tmp_path / folder, device="cpu").model.backbone for folder in ("m", "out"))
    moved = {
        key for key, weight in after.named_parameters() if not torch.equal(weight, before.get_parameter(key))
    }
    assert moved
    last = {"bert": "encoder.layer.2.", "t5": "encoder.block.2."}.get(name, "layers.2.")
    after_them = {"bert": (), "t5": ("encoder.final_layer_norm.",)}.get(name, ("norm.",))
    assert all(key.startswith((last, *after_them)) for key in moved), moved
    assert any(key.startswith(after_them) for key in moved) or not after_them


def test_adapters_of_the_last_layers_learn_alone(tmp_path: Path) -> None:
    backbone = save_llama(tmp_path / "m", layers=2)
    how = {**DEEP, "layers": None, "dims": None, "settings": {"lora.rank": 2}}
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "out", top_layers=1, lora=True, **how)
    adapters = load_file(tmp_path / "out/adapter_model.safetensors")
    moved = {key for key, weight in adapters.items() if "lora_B" in key and weight.any()}
    assert moved
    assert all(".layers.1." in key for key in moved)


def test_more_layers_to_train_than_there_are(three: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"optim\.top_layers 4: this backbone has 3 layers; expected 1 to 3"
    ):
        aoe_train.train(ROWS, backbone=three, out=tmp_path / "out", top_layers=4, progress=False)
