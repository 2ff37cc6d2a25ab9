"""ONNX graphs in fp32 and int8: files, vectors, and the loss by int8."""

import importlib.util
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from aoe_train import Encoder
from aoe_train.evaluation.pair_task import PairSource
from aoe_train.exporting import export as exports
from aoe_train.exporting import onnx as graphs
from aoe_train.exporting.export import difference, probes
from aoe_train.exporting.onnx import GRAPHS, Loss, PaddedEncoder, measure, onnx_encoder
from aoe_train.model.encoder_settings import EncoderSettings
from tests.aoe_train.tiny import POOLINGS, around, card_of, read_json
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    pair_table,
    parametrize,
    table,
    values,
)

needs_packages = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, graphs._PACKAGES)),
    reason="onnx, onnxruntime and onnxscript are extras",
)


export = partial(exports.export, export_format="onnx")


def load(folder, **settings):
    return Encoder.load(folder, precision="fp32", **settings)


@parametrize("pooling", POOLINGS)
def test_padded_encoder_equals_encoder(llama, pooling):
    encoder = load(
        llama, pooling=pooling, max_length=48, normalize=True, bidirectional=True
    )
    backbone = load(llama, bidirectional=True, packing=False).model.backbone
    texts = [*probes(48), "a cat . " * 4]
    tokens = encoder.tokenizer(
        texts, padding=True, truncation=True, max_length=48, return_tensors="pt"
    )
    settings = EncoderSettings(pooling=pooling, normalize=True)
    model = PaddedEncoder(backbone, settings).eval()
    with torch.no_grad():
        found = model(tokens["input_ids"], tokens["attention_mask"])[1].numpy()
    assert difference(found, encoder.encode(texts)) < 1e-5


PROMPTS = {"query": "the man: ", "document": "a road "}


@module_fixture
def exported(shallow, tmp_path_factory):
    """A model with prompts and its exported graph, shared because tracing takes seconds."""
    folder = tmp_path_factory.mktemp("onnx") / "x"
    encoder = load(
        shallow,
        pooling="avg",
        normalize=True,
        max_length=40,
        prompts=PROMPTS,
        default_prompt_name="query",
    )
    assert export(encoder, folder, source=shallow).difference < 1e-5
    return encoder, folder


@needs_packages
def test_a_graph_and_the_code_in_its_card(exported, monkeypatch):
    encoder, folder = exported
    agrees(folder, encoder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    files = """
    onnx/model.onnx config.json tokenizer.json tokenizer_config.json
    1_Pooling/config.json sentence_bert_config.json README.md run.json
    """
    assert names >= {*files.split()}
    assert not any(name.endswith((".safetensors", ".data")) for name in names)
    assert read_json(folder / "run.json")["export"]["format"] == "onnx"
    saved = read_json(folder / "config_sentence_transformers.json")
    assert (saved["prompts"], saved["default_prompt_name"]) == (PROMPTS, "query")
    encode, card = (
        onnx_encoder(folder, encoder.settings.named_prompts),
        card_of(folder),
    )
    for name in (None, *PROMPTS):
        expected = encoder.encode(["a cat"], prompt_name=name)
        assert_allclose(encode(["a cat"], prompt_name=name), expected, atol=1e-5)
    assert "| `document` | `a road ` |" in card
    monkeypatch.chdir(folder.parent)
    expected = encoder.encode([FLUTE], prompt="")
    assert_allclose(vectors_of_card(card), expected, atol=1e-5)


FLUTE = "A man is playing a flute."


def vectors_of_card(card):
    """Vectors of FLUTE, computed by the code in a card."""
    found = {}
    exec(card.split("```python\n")[2].split("```")[0], found)
    return np.asarray(found["vectors"])


@pytest.mark.slow
@needs_packages
@table(
    """
    backbone, settings
    bert | {'pooling': 'first-last-avg', 'max_length': 40}
    llama | PROMPTED
    llama | {'pooling': 'max', 'bidirectional': True, 'max_length': 48}
    minilm | {}
    """,
    PROMPTED={"pooling": "last", "max_length": 48, **around("the {text} in one word:")},
)
def test_graphs(request, tmp_path, backbone, settings):
    source = request.getfixturevalue(backbone)
    encoder = load(source, **settings)
    assert export(encoder, tmp_path / "x", source=source).difference < 1e-5
    agrees(tmp_path / "x", encoder)


def agrees(folder, encoder):
    """The graph accepts any number of texts of any length."""
    encode = onnx_encoder(folder, encoder.settings.named_prompts)
    texts = [*probes(48), "a cat . " * 4]
    for some in (texts[:1], texts, texts[2:5]):
        assert difference(encode(some), encoder.encode(some)) < 1e-5


@needs_packages
def test_ran_has_no_onnx_export(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "ran"}')
    with config_error(r"recurrent steps depends.*format='sentence-transformers'"):
        graphs.write_onnx(tmp_path, tmp_path, EncoderSettings(pooling="cls"), 32)


def test_missing_packages_are_named(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "find_spec", {"onnx": SimpleNamespace()}.get)
    with config_error(r"ONNX needs onnxruntime, onnxscript.*aoe-toolkit\[onnx\]"):
        export(Encoder.load(bert), tmp_path / "x", source=bert)
    assert not (tmp_path / "x").exists()


@needs_packages
@table(
    """
    settings, told
    {'include_prompt': False} | ignores the tokens of prompts
    TWO | 'a' has words after the text, and it has other prompts
    """,
    TWO={"prompts": {"a": "the {text} or", "b": "a "}, "default_prompt_name": "a"},
)
def test_models_that_can_not_be_graphs(bert, tmp_path, settings, told):
    with config_error(told):
        export(load(bert, **settings), tmp_path / "x", source=bert)


VECTORS = dict(
    values("""
    a | [1.0, 0.0]
    bb | [0.0, 1.0]
    ccc | [0.8, 0.6]
    """)
)
# Cosines with the above: 1, 1, 0.96.
TURNED = dict(
    values("""
    a | [1.0, 0.0]
    bb | [0.0, 2.0]
    ccc | [0.6, 0.8]
    """)
)
PAIRS = pair_table(
    values("""
    a | bb | 0.0
    a | ccc | 5.0
    bb | ccc | 2.5
    """)
)


def encoding(vectors):
    return lambda texts: np.float32([vectors[text] for text in texts])


def measured(other, tmp_path, pairs=PAIRS):
    task = PairSource(pairs).task()
    return measure(encoding(VECTORS), encoding(other), task, path=tmp_path)


def test_loss_by_hand(monkeypatch, tmp_path):
    monkeypatch.setattr(graphs, "_MIN_AGREEMENT", 0.4)
    found = measured(TURNED, tmp_path)
    # Cosines of the pairs: 0, 0.8, 0.6 became 0, 0.6, 0.8; their ranks 1, 3, 2 and 1, 2, 3.
    assert found.agreement == approx(0.5)
    assert (found.spearman, found.spearman_int8) == (approx(1), approx(0.5))
    assert found.cosine_least == approx(0.96)
    assert found.cosine_mean == approx(2.96 / 3)
    assert str(found) == (
        "int8 on 3 pairs of the DataFrame given: Spearman with the labels 100.00 in fp32 and 50.00 in int8,"
        " Spearman of their cosines with fp32's 0.5000; cosine of a vector with fp32's 0.9867 (mean), 0.9600"
        " (minimum)"
    )


def test_too_much_loss_is_refused(tmp_path):
    with data_error(r"0\.5000;.*at least 0\.9: int8 is too imprecise"):
        measured(TURNED, tmp_path)
    with data_error("all labels are 1"):
        measured(VECTORS, tmp_path, PAIRS.with_columns(label=1.0))
    with data_error("nan"):
        measured(dict.fromkeys(VECTORS, [float("nan")] * 2), tmp_path)


@needs_packages
def test_int8_export(exported, tmp_path, monkeypatch):
    """Uses the exported graph, without the limit on agreement: cosines are almost equal here."""
    encoder, folder = exported
    monkeypatch.setattr(graphs, "_MIN_AGREEMENT", -1)
    copy = shutil.copytree
    monkeypatch.setattr(
        exports, "write_onnx", lambda out, *_: copy(folder, out, dirs_exist_ok=True)
    )
    done = export(encoder, tmp_path / "x", source=tmp_path, export_format="onnx-int8")
    assert [path.name for path in (tmp_path / "x/onnx").iterdir()] == [
        "model_qint8.onnx"
    ]
    encode = onnx_encoder(
        tmp_path / "x", encoder.settings.named_prompts, file=GRAPHS["onnx-int8"]
    )
    assert 1e-6 < difference(encode(probes(40)), encoder.encode(probes(40))) < 0.3
    assert done.difference < 1e-4
    assert isinstance(done.loss, Loss)
    assert done.loss.cosine_mean > 0.95
    card = card_of(tmp_path / "x")
    assert f"{done.loss}." in card
    assert 'backend="onnx", model_kwargs={"file_name": "onnx/model_qint8.onnx"}' in card
    assert '{model_file_name: "model_qint8", dtype: "fp32"}' in card
    assert read_json(tmp_path / "x/run.json")["export"]["loss"]["pairs"] == 190
    monkeypatch.chdir(tmp_path)
    assert difference(vectors_of_card(card), encoder.encode([FLUTE], prompt="")) < 0.3
