from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from aoe_train.cli import app
from aoe_train.exporting import export as exports
from aoe_train.exporting.export import difference, export, probes
from aoe_train.model.backbones.decoder import add_lora
from aoe_train.model.encoder import Encoder
from aoe_train.settings.training import LoraSettings
from pairkit.app.errors import ConfigError, DataError
from tests.aoe_train.tiny import around

THEIRS = "sentence-transformers"


def adapted(llama: Path, folder: Path) -> Encoder:
    """A model folder that holds adapters which change the vectors."""
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


def run(*flags: object) -> dict[str, Any]:
    found = CliRunner().invoke(app, ["export", *map(str, flags), "--json"], catch_exceptions=False)
    return json.loads(found.stdout.splitlines()[-1])


def test_adapters_become_weights_of_a_folder_that_stands_by_itself(llama: Path, tmp_path: Path) -> None:
    encoder = adapted(llama, tmp_path / "m")
    texts = probes(64)
    expected = encoder.encode(texts)
    assert (
        difference(
            Encoder.load(llama, device="cpu", pooling="last", bidirectional=True).encode(texts), expected
        )
        > 0.1
    )
    done = export(
        Encoder.load(tmp_path / "m", device="cpu"), tmp_path / "x", source=tmp_path / "m", form=THEIRS
    )
    assert done.merged
    assert max(done.difference, done.rounding) < 1e-5
    assert not list((tmp_path / "x").glob("adapter*"))
    assert not any("lora" in name for name in load_file(tmp_path / "x/model.safetensors"))
    assert difference(SentenceTransformer(str(tmp_path / "x"), device="cpu").encode(texts), expected) < 1e-5
    assert difference(Encoder.load(tmp_path / "x", device="cpu").encode(texts), expected) < 1e-5


@pytest.mark.parametrize(("dtype", "within"), [("bf16", 0.1), ("fp16", 0.01)])
def test_half_precision_weights(bert: Path, tmp_path: Path, dtype: str, within: float) -> None:
    encoder = Encoder.load(bert, device="cpu", precision="fp32")
    done = export(encoder, tmp_path / "x", source=bert, form=THEIRS, dtype=dtype)  # type: ignore[arg-type]
    assert done.difference < 1e-5
    assert 1e-5 < done.rounding < within
    stored = {weight.dtype for weight in load_file(tmp_path / "x/model.safetensors").values()}
    assert stored == {{"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]}


def test_card_and_run_say_how_to_use_it(bert: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(bert, device="cpu", long_text="chunks", max_length=16, **around("the {text}"))
    done = export(encoder, tmp_path / "x", source=bert, form=THEIRS)
    card = (tmp_path / "x/README.md").read_text()
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    assert 'SentenceTransformer("x", trust_remote_code=True)' in card
    assert "pip install aoe-toolkit" in card
    assert "`the {text}`" in card
    said = json.loads((tmp_path / "x/run.json").read_text())
    assert said["export"]["needs_toolkit"] == done.needs_toolkit
    assert str(tmp_path) not in json.dumps(said)


def test_card_and_run_of_training_are_taken_along(bert: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(bert, device="cpu")
    encoder.save(tmp_path / "m")
    (tmp_path / "m/README.md").write_text("# The card\n")
    (tmp_path / "m/run.json").write_text('{"seed": 7}')
    export(encoder, tmp_path / "x", source=tmp_path / "m", form=THEIRS)
    assert (tmp_path / "x/README.md").read_text() == "# The card\n"
    said = json.loads((tmp_path / "x/run.json").read_text())
    assert (said["seed"], said["export"]["format"]) == (7, THEIRS)


def test_other_vectors_leave_nothing_behind(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(bert, device="cpu", pooling="avg")

    def forgets_its_pooling(folder: Path, *, trust: bool) -> Any:
        return Encoder.load(folder, device="cpu", pooling="cls").encode

    monkeypatch.setattr(exports, "_their_encoder", forgets_its_pooling)
    with pytest.raises(DataError, match="nothing was written"):
        export(encoder, tmp_path / "x", source=bert, form=THEIRS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"form": "pickle"}, "formats are sentence-transformers, onnx"),
        ({"form": THEIRS, "dtype": "int8"}, "dtypes fp32, bf16, fp16"),
    ],
)
def test_refuses_what_it_cant_write(bert: Path, tmp_path: Path, flags: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        export(Encoder.load(bert, device="cpu"), tmp_path / "x", source=bert, **flags)


def test_never_writes_over_a_folder(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(ConfigError, match="already exists"):
        CliRunner().invoke(
            app, ["export", "--model", str(bert), "--out", str(tmp_path / "x")], catch_exceptions=False
        )


def test_command(llama: Path, tmp_path: Path) -> None:
    adapted(llama, tmp_path / "m")
    said = run("--model", tmp_path / "m", "--out", tmp_path / "x")
    assert said["out"] == str(tmp_path / "x")
    assert (said["merged"], said["dim"], said["needs_toolkit"]) == (True, 32, None)


def test_prompts_are_taken_along_and_checked(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = {"query": "the man: ", "document": "a road "}
    more = {"prompts": prompts, "default_prompt_name": "query", "similarity_fn_name": "dot"}
    encoder = Encoder.load(bert, device="cpu", **more)
    done = export(encoder, tmp_path / "x", source=bert, form=THEIRS)
    theirs = SentenceTransformer(str(tmp_path / "x"), device="cpu")
    assert (theirs.prompts, theirs.default_prompt_name) == (prompts, "query")
    assert theirs.similarity_fn_name == "dot"
    assert Encoder.load(tmp_path / "x", device="cpu").settings == encoder.settings
    assert done.difference < 1e-5
    assert "| `query` | `the man: ` |" in (tmp_path / "x/README.md").read_text()

    def forgetful(folder: Path, *, trust: bool) -> Any:
        model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust)
        return lambda texts, prompt_name=None: model.encode(list(texts))

    monkeypatch.setattr(exports, "_their_encoder", forgetful)
    with pytest.raises(DataError, match="the export's vectors differ"):
        export(encoder, tmp_path / "y", source=bert, form=THEIRS)


def test_adapters_keep_prompts(llama: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(llama, device="cpu", pooling="last", prompts={"query": "q: "})
    add_lora(encoder.model.backbone, LoraSettings(rank=4, alpha=8))
    encoder.model.eval()
    encoder.save(tmp_path / "m")
    again = Encoder.load(tmp_path / "m", device="cpu")
    expected = encoder.encode(["a cat"], prompt_name="query")
    assert difference(again.encode(["a cat"], prompt_name="query"), expected) < 1e-6
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert difference(theirs.encode(["a cat"], prompt_name="query"), expected) < 1e-6
