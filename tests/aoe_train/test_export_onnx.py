from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.exporting import onnx as graphs
from aoe_train.exporting.export import difference, export, probes
from aoe_train.exporting.onnx import PaddedEncoder, onnx_encoder, pool_padded, write_onnx
from aoe_train.model.encoder import Encoder
from aoe_train.model.text_model import pool
from aoe_train.settings.training import EncoderSettings
from pairkit.app.errors import ConfigError
from tests.aoe_train.tiny import around

POOLINGS = ["cls", "avg", "max", "last", "cls-avg", "weighted-mean"]
needs_packages = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, graphs._PACKAGES)),
    reason="onnx, onnxruntime and onnxscript are extras",
)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.sampled_from(POOLINGS), st.integers(0, 3))
def test_padded_pooling_is_packed_pooling(lengths: list[int], pooling: str, padding: int) -> None:
    torch.manual_seed(sum(lengths))
    states = [torch.randn(n, 4) for n in lengths]
    padded = torch.full((len(lengths), max(lengths) + padding, 4), 1e3)
    mask = torch.zeros(padded.shape[:2], dtype=torch.int64)
    for row, state in enumerate(states):
        padded[row, : len(state)], mask[row, : len(state)] = state, 1
    packed = pool(
        (torch.cat(states),), torch.tensor(lengths), torch.ones(len(lengths), dtype=torch.int64), pooling
    )
    assert torch.allclose(pool_padded(padded, mask, pooling), packed, atol=1e-5)


def load(folder: Path, **settings: Any) -> Encoder:
    return Encoder.load(folder, device="cpu", precision="fp32", **settings)


@pytest.mark.parametrize("pooling", [*POOLINGS, "first-last-avg"])
def test_what_is_traced_gives_our_vectors(llama: Path, pooling: str) -> None:
    encoder = load(llama, pooling=pooling, max_length=48, normalize=True, bidirectional=True)
    backbone = load(llama, bidirectional=True, packing=False).model.backbone
    texts = [*probes(48), "a cat . " * 4]
    tokens = encoder.tokenizer(texts, padding=True, truncation=True, max_length=48, return_tensors="pt")
    model = PaddedEncoder(backbone, pooling, normalize=True).eval()
    with torch.no_grad():
        found = model(tokens["input_ids"], tokens["attention_mask"])[1].numpy()
    assert difference(found, encoder.encode(texts)) < 1e-5


PROMPTS = {"query": "the man: ", "document": "a road "}


@pytest.fixture(scope="module")
def exported(shallow: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Encoder, Path]:
    """A model with prompts, and the folder of its graph: one for several tests, as tracing takes seconds."""
    folder = tmp_path_factory.mktemp("onnx") / "x"
    encoder = load(
        shallow, pooling="avg", normalize=True, max_length=40, prompts=PROMPTS, default_prompt_name="query"
    )
    assert export(encoder, folder, source=shallow, form="onnx").difference < 1e-5
    return encoder, folder


@needs_packages
def test_a_graph_and_its_card_s_code(exported: tuple[Encoder, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, folder = exported
    agrees(folder, encoder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names >= {
        "onnx/model.onnx",
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "modules.json",
    }
    assert names >= {"1_Pooling/config.json", "sentence_bert_config.json", "README.md", "run.json"}
    assert not any(name.endswith((".safetensors", ".data")) for name in names)
    assert json.loads((folder / "run.json").read_text())["export"]["format"] == "onnx"
    monkeypatch.chdir(folder.parent)
    code = (folder / "README.md").read_text().split("```python\n")[2].split("```")[0]
    found: dict[str, Any] = {}
    exec(code, found)
    expected = encoder.encode(["A man is playing a flute."], prompt="")
    np.testing.assert_allclose(found["vectors"], expected, atol=1e-5)


@needs_packages
def test_a_graph_has_each_prompt(exported: tuple[Encoder, Path]) -> None:
    encoder, folder = exported
    saved = json.loads((folder / "config_sentence_transformers.json").read_text())
    assert (saved["prompts"], saved["default_prompt_name"]) == (PROMPTS, "query")
    encode = onnx_encoder(folder, encoder.settings.named_prompts)
    for name in (None, *PROMPTS):
        expected = encoder.encode(["a cat"], prompt_name=name)
        np.testing.assert_allclose(encode(["a cat"], prompt_name=name), expected, atol=1e-5)
    card = (folder / "README.md").read_text()
    assert "| `document` | `a road ` |" in card
    assert "Whoever runs the graph alone puts it before the text." in card


@pytest.mark.slow
@needs_packages
@pytest.mark.parametrize(
    ("backbone", "settings"),
    [
        ("bert", {"pooling": "first-last-avg", "max_length": 40}),
        ("llama", {"pooling": "last", **around("the {text} in one word:"), "max_length": 48}),
        ("llama", {"pooling": "max", "bidirectional": True, "max_length": 48}),
        ("minilm", {}),
    ],
)
def test_graphs(
    request: pytest.FixtureRequest, tmp_path: Path, backbone: str, settings: dict[str, Any]
) -> None:
    source = request.getfixturevalue(backbone)
    encoder = load(source, **settings)
    assert export(encoder, tmp_path / "x", source=source, form="onnx").difference < 1e-5
    agrees(tmp_path / "x", encoder)


def agrees(folder: Path, encoder: Encoder) -> None:
    """One graph for any number of texts of any length."""
    encode = onnx_encoder(folder, encoder.settings.named_prompts)
    texts = [*probes(48), "a cat . " * 4]
    for some in (texts[:1], texts, texts[2:5]):
        assert difference(encode(some), encoder.encode(some)) < 1e-5


@needs_packages
def test_a_graph_reads_one_window(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a graph reads one window"):
        write_onnx(tmp_path, bert, EncoderSettings(pooling="cls", long_text="chunks"), 32)


@needs_packages
def test_a_recurrent_network_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "ran"}')
    with pytest.raises(ConfigError, match=r"memory is updated.*--format sentence-transformers"):
        write_onnx(tmp_path, tmp_path, EncoderSettings(pooling="cls"), 32)


@needs_packages
def test_half_precision_graphs_are_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exported in fp32"):
        export(Encoder.load(bert, device="cpu"), tmp_path / "x", source=bert, form="onnx", dtype="bf16")


def test_missing_packages_are_named(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"onnx": SimpleNamespace()}
    monkeypatch.setattr(graphs, "find_spec", found.get)
    with pytest.raises(
        ConfigError, match=r"ONNX needs onnxruntime, onnxscript; install.*aoe-toolkit\[onnx\]"
    ):
        export(Encoder.load(bert, device="cpu"), tmp_path / "x", source=bert, form="onnx")
    assert not (tmp_path / "x").exists()


@needs_packages
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"include_prompt": False}, "leaves out the tokens of prompts"),
        (
            {"prompts": {"a": "the {text} or", "b": "a "}, "default_prompt_name": "a"},
            "'a' has words after the text, and it has other prompts",
        ),
    ],
)
def test_prompts_that_a_graph_cannot_have(
    bert: Path, tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    encoder = Encoder.load(bert, device="cpu", **settings)
    with pytest.raises(ConfigError, match=told):
        export(encoder, tmp_path / "x", source=bert, form="onnx")
