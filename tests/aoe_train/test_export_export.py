"""Exports: adapters merged, half precision, mixing with the backbone and cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import aoe_train
from aoe_train import Encoder
from aoe_train.exporting import export as exports
from aoe_train.exporting.export import difference, export, probes
from aoe_train.model.backbones.decoder import add_lora
from aoe_train.settings.train_settings import LoraSettings
from pairkit import ConfigError, DataError
from tests.aoe_train.shell import aoe
from tests.aoe_train.tiny import around, save_bert

THEIRS = "sentence-transformers"


def adapted(llama: Path, folder: Path) -> Encoder:
    """A model folder with adapters that change the vectors."""
    encoder = Encoder.load(
        llama, device="cpu", pooling="last", **around("the {text} in one word:"), bidirectional=True
    )
    torch.manual_seed(0)
    add_lora(encoder.model.backbone, LoraSettings(rank=4, alpha=8))
    for weight in encoder.model.backbone.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1)
    encoder.model.eval()
    encoder.save(folder)
    return encoder


def test_adapters_are_merged_into_a_self_contained_folder(llama: Path, tmp_path: Path):
    encoder, texts, out = adapted(llama, tmp_path / "m"), probes(64), tmp_path / "x"
    expected = encoder.encode(texts)
    plain = Encoder.load(llama, device="cpu", pooling="last", bidirectional=True)
    assert difference(plain.encode(texts), expected) > 0.1
    result = json.loads(aoe("export", "--model", tmp_path / "m", "--out", out, "--json"))
    assert (result["out"], result["merged"], result["dim"], result["needs_toolkit"]) == (
        str(out),
        True,
        32,
        None,
    )
    assert max(result["difference"], result["rounding"]) < 1e-5
    assert not list(out.glob("adapter*"))
    assert not any("lora" in name for name in load_file(out / "model.safetensors"))
    assert difference(SentenceTransformer(str(out), device="cpu").encode(texts), expected) < 1e-5
    assert difference(Encoder.load(out, device="cpu").encode(texts), expected) < 1e-5


@pytest.mark.parametrize(("dtype", "within"), [("bf16", 0.1), ("fp16", 0.01)])
def test_half_precision_weights(bert: Path, tmp_path: Path, dtype: str, within: float):
    encoder = Encoder.load(bert, device="cpu", precision="fp32")
    done = export(encoder, tmp_path / "x", source=bert, form=THEIRS, dtype=dtype)  # type: ignore[arg-type]
    assert done.difference < 1e-5
    assert 1e-5 < done.rounding < within
    stored = {weight.dtype for weight in load_file(tmp_path / "x/model.safetensors").values()}
    assert stored == {{"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]}


def test_card_and_run_record(bert: Path, tmp_path: Path):
    encoder = Encoder.load(bert, device="cpu", long_text="chunks", max_length=16, **around("the {text}"))
    done = export(encoder, tmp_path / "x", source=bert, form=THEIRS)
    card = (tmp_path / "x/README.md").read_text()
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    for words in ('SentenceTransformer("x", trust_remote_code=True)', "install aoe-toolkit", "`the {text}`"):
        assert words in card
    record = json.loads((tmp_path / "x/run.json").read_text())
    assert record["export"]["needs_toolkit"] == done.needs_toolkit
    assert str(tmp_path) not in json.dumps(record)
    encoder.save(tmp_path / "m")  # a trained model has a card and a record of its own
    (tmp_path / "m/README.md").write_text("# The card\n")
    (tmp_path / "m/run.json").write_text('{"seed": 7}')
    export(encoder, tmp_path / "y", source=tmp_path / "m", form=THEIRS)
    assert (tmp_path / "y/README.md").read_text() == "# The card\n"
    record = json.loads((tmp_path / "y/run.json").read_text())
    assert (record["seed"], record["export"]["format"]) == (7, THEIRS)


@pytest.mark.parametrize("forgets", ["pooling", "prompts"])
def test_a_failed_verification_leaves_no_files(bert: Path, tmp_path: Path, monkeypatch, forgets: str):
    prompts = {"query": "the man: ", "document": "a road "}
    encoder = Encoder.load(bert, device="cpu", pooling="avg", prompts=prompts, default_prompt_name="query")

    def forgetful(folder: Path, *, trust: bool) -> Any:
        if forgets == "pooling":
            return Encoder.load(folder, device="cpu", pooling="cls").encode
        model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust)
        return lambda texts, prompt_name=None: model.encode(list(texts))

    monkeypatch.setattr(exports, "_their_encoder", forgetful)
    with pytest.raises(DataError, match=r"the export's vectors differ.*nothing was written"):
        export(encoder, tmp_path / "x", source=bert, form=THEIRS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("adapters", [False, True])
def test_weights_are_averaged_with_the_backbones(adapters: bool, llama: Path, tmp_path: Path):
    if adapters:
        backbone, trained = llama, tmp_path / "merged"
        adapted(llama, tmp_path / "m")
        aoe_train.export(tmp_path / "m", out=trained, progress=False)
    else:
        backbone, trained = save_bert(tmp_path / "one"), save_bert(tmp_path / "m", seed=1)
        (trained / "README.md").write_text("# The card of the trained model\n")
    (tmp_path / "m" / "run.json").write_text(json.dumps({"sources": {"backbone": str(backbone)}}))
    done = aoe_train.export(tmp_path / "m", out=tmp_path / "mixed", interpolate=0.25, progress=False)
    assert (done.interpolate, done.merged) == (0.25, adapters)
    assert json.loads((tmp_path / "mixed/run.json").read_text())["export"]["interpolate"] == 0.25
    card = (tmp_path / "mixed/README.md").read_text()
    assert "Weights: 0.25 x trained + 0.75 x backbone" in card
    assert "The card of the trained model" not in card
    first, last, mixed = (
        load_file(at / "model.safetensors") for at in (backbone, trained, tmp_path / "mixed")
    )
    for name, weight in mixed.items():
        torch.testing.assert_close(weight, 0.75 * first[name] + 0.25 * last[name])


def test_export_errors(tmp_path: Path):
    one, wide = save_bert(tmp_path / "one", layers=1), save_bert(tmp_path / "wide", layers=2)
    mixed: dict[str, Any] = {"interpolate": 0.5}
    for given, words in (
        (mixed, "its run.json doesn't name its backbone; give backbone="),
        ({**mixed, "backbone": wide}, "different names or shapes"),
        ({"interpolate": 1.5, "backbone": one}, r"interpolate 1\.5: expected a number above 0"),
        ({"backbone": one}, "backbone= without interpolate= has no effect"),
        ({"format": "pickle"}, "expected a format of sentence-transformers, onnx"),
        ({"dtype": "int8"}, "a dtype of fp32, bf16, fp16"),
        ({"out": one}, "already exists"),
    ):
        with pytest.raises(ConfigError, match=words):
            aoe_train.export(one, **{"out": tmp_path / "out", "progress": False, **given})
    assert not (tmp_path / "out").exists()
