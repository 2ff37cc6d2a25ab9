"""Dense layers and T5: loaded from sentence-transformers, and saved for it."""

import shutil
from functools import cache, partial
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import nn

from aoe_train import encode, export, train
from pairkit import ConfigError
from tests.aoe_train.tiny import (
    difference,
    edit,
    load,
    probes,
    read_json,
    save_bert,
    save_gemma,
    save_llama,
    save_t5,
    sentence_transformer,
)
from tests.support.shorthand import (
    config_error,
    module_fixture,
    parametrize,
    raises,
    table,
    values,
)

TEXTS = [*probes(40), "bread", "a large blue car is on the road . " * 3, "the dog"]
ROWS = [
    {
        "text1": f"a {one} cat is playing",
        "text2": f"the {two} cat is eating",
        "score": score,
    }
    for one, two, score in values("""
        large | large | 1.0
        small | large | 0.2
        red | red | 0.9
        blue | red | 0.4
        old | new | 0.0
        slow | slow | 0.8
        fast | slow | 0.3
        new | new | 0.7
    """)
]


SAVING = {"log.checkpoint_steps": 1}


def fit(backbone, out, data=ROWS, **how):
    """Train a few steps."""
    given = {"epochs": 2, "batch_size": 4, "lr": 1e-3, "preset": "cosent", **how}
    return train(data, backbone=backbone, out=out, **given)


added = partial(Dense, 32, use_residual=True)
LINEAR = {"bias": False, "activation_function": nn.Identity()}
# As LaBSE (the first token through a tanh), sentence-T5 (the mean through a matrix), EmbeddingGemma (the mean
# through a wide layer and back), and two layers that add what came in, one of them through a matrix.
KINDS = {
    "labse": (
        lambda path: save_bert(path, layers=1),
        "cls",
        lambda: [Dense(32, 24), Normalize()],
    ),
    "t5": (save_t5, "mean", lambda: [Dense(32, 24, **LINEAR), Normalize()]),
    "gemma": (
        save_gemma,
        "mean",
        lambda: [Dense(32, 128, **LINEAR), Dense(128, 32, **LINEAR), Normalize()],
    ),
    "residual": (
        save_llama,
        "weightedmean",
        lambda: [added(32, activation_function=nn.GELU()), added(12)],
    ),
}


@module_fixture
def folders(tmp_path_factory):
    """A folder of each kind, saved by sentence-transformers on first use."""

    @cache
    def folder(kind):
        place = tmp_path_factory.mktemp(kind)
        save, pooling, heads = KINDS[kind]
        torch.manual_seed(1)
        transformer = Transformer(str(save(place / "backbone")), max_seq_length=40)
        if kind == "residual":
            transformer.tokenizer.pad_token = "</s>"
        modules = [transformer, Pooling(32, pooling), *heads()]
        SentenceTransformer(modules=modules).save(str(place / "theirs"))
        return place / "theirs"

    return folder


def theirs(folder):
    return sentence_transformer(folder).encode(TEXTS, batch_size=3)


@parametrize("kind", KINDS)
def test_load_from_and_save_for_sentence_transformers(kind, folders, out):
    folder = folders(kind)
    expected = theirs(folder)
    ours = load(folder)
    assert ours.model.packed is (kind != "t5")
    assert difference(ours.encode(TEXTS), expected) < 1e-6
    assert ours.dim == expected.shape[1]
    ours.save(out)
    assert difference(theirs(out), expected) < 1e-6
    again = load(out, inference_only=True)
    assert (again.encode(TEXTS) == ours.encode(TEXTS)).all() or kind == "labse"
    assert difference(again.encode(TEXTS), expected) < 1e-6
    assert again.settings == ours.settings


@table(
    """
    kind, lora
    labse | False
    gemma | False
    residual | True
    """
)
def test_dense_layers_learn_and_keep_their_shape(kind, lora, folders, out, tmp_path):
    """With adapters, dense layers are trained as a whole."""
    before = load(folders(kind))
    trained = fit(folders(kind), out, lora=lora, settings=SAVING).encoder
    assert trained.settings.dense == before.settings.dense
    learnt = dict(trained.model.heads.named_parameters())
    assert all(
        (learnt[name] != weight).any()
        for name, weight in before.model.heads.named_parameters()
    )
    assert (tmp_path / "m/model.safetensors").exists() is not lora
    if not lora:
        one, other = (
            model.model.backbone.get_input_embeddings().weight
            for model in (before, trained)
        )
        used = (one != other).any(dim=1)
        assert 5 < int(used.sum()) < len(used) / 2  # words that occur, and no others
    assert difference(theirs(out), trained.encode(TEXTS)) < 1e-6


def test_dense_layers_in_an_onnx_graph(folders, tmp_path, monkeypatch):
    """In fp32, and in int8 from the same graph."""
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = folders("labse")
    done = export(folder, out=tmp_path / "graph", format="onnx")
    assert done.dim == load(folder).dim
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "graph")(
        TEXTS, padding=True, truncation=True, return_tensors="np"
    )
    graph = onnxruntime.InferenceSession(tmp_path / "graph/onnx/model.onnx")
    inputs = {name: tokens[name] for name in ("input_ids", "attention_mask")}
    (found,) = graph.run(["sentence_embedding"], inputs)
    assert difference(found, theirs(folder)) < 1e-5
    listed = read_json(tmp_path / "graph/modules.json")
    assert len(listed) == 4
    for one in listed[1:]:
        assert (tmp_path / "graph" / one["path"] / "config.json").is_file()
    # Cosines are almost equal here.
    monkeypatch.setattr("aoe_train.exporting.onnx._MIN_AGREEMENT", -1)
    copy = partial(shutil.copytree, tmp_path / "graph", dirs_exist_ok=True)
    monkeypatch.setattr(
        "aoe_train.exporting.export.write_onnx", lambda out, *_: copy(out)
    )
    smaller = export(folder, out=tmp_path / "int8", format="onnx-int8")
    assert smaller.dim == done.dim
    assert smaller.loss.cosine_mean > 0.95


def test_a_new_layer_is_trained_and_the_run_is_recognised(bert, out, tmp_path):
    dense = [{"size": 8, "activation": "tanh", "bias": False}]
    options = {"settings": SAVING | {"encoder.dense": dense}}
    run = fit(bert, out, **options)
    assert run.encoder.dim == 8
    assert difference(theirs(out), run.encoder.encode(TEXTS)) < 1e-6
    config = read_json(tmp_path / "m/dense_1/config.json")
    assert (config["in_features"], config["out_features"]) == (32, 8)
    assert config["bias"] is False
    told = []
    options["progress"] = lambda at: told.append(at.stage)
    assert fit(bert, out, **options).steps == run.steps
    assert "train" not in told  # the same run: finished already


@table(
    """
    given
    [0]
    ['x']
    [{'size': 8, 'activation': 'os.system'}]
    1.5
    [True, {}]
    """
)
def test_invalid_layers(given, bert):
    with raises(ConfigError):
        load(bert, dense=given)


@table(
    r"""
    harm, error, message
    PICKLED | ConfigError | its only weights are pytorch_model.bin, a pickle
    LOST | DataError | 2_Dense.model\.safetensors: not readable
    {'out_features': 8} | DataError | expected weights of the shapes
    {'module_input_name': 'token_embeddings'} | ConfigError | a Dense layer on token
    """,
    PICKLED=lambda layer: layer.rename(layer.with_name("pytorch_model.bin")),
    LOST=Path.unlink,
)
def test_what_is_refused(harm, error, message, folders, out):
    layer = shutil.copytree(folders("labse"), out) / "2_Dense"
    if callable(harm):
        harm(layer / "model.safetensors")
    else:
        edit(layer / "config.json", **harm)
    with raises(error, match=message):
        load(out)
    with config_error(r"has its own dense layers; leave encoder\.dense out"):
        load(folders("labse"), dense=[8])


@parametrize("normalizes", [True, False])
def test_truncate_dim_of_a_folder_is_kept(bert, out, tmp_path, normalizes):
    """A stored `dim` truncates scaled vectors; a requested one truncates before scaling, as theirs does."""
    pooled = [Transformer(str(bert), max_seq_length=40), Pooling(32, "mean")]
    modules = [*pooled, *[Normalize()] * normalizes]
    model = SentenceTransformer(modules=modules, truncate_dim=12)
    model.save(str(tmp_path / "theirs"))
    ours = load(tmp_path / "theirs")
    assert ours.settings.dim == ours.dim == 12
    ours.save(out)
    for encoder in (ours, load(out)):
        assert difference(encoder.encode(TEXTS), model.encode(TEXTS)) < 1e-6
        for how, asked in (({"dim": 20}, {"truncate_dim": 20}), ({}, {})):
            expected = model.encode(TEXTS, normalize_embeddings=True, **asked)
            found = encoder.encode(TEXTS, normalize=True, **how)
            assert difference(found, expected) < 1e-6
    assert difference(theirs(out), model.encode(TEXTS)) < 1e-6
    assert (encode(TEXTS, model=ours) == ours.encode(TEXTS)).all()


def test_training_with_truncated_vectors(bert, tmp_path):
    """The loss sees only the kept dimensions."""
    how = {"settings": SAVING | {"encoder.dim": 8, "encoder.pooling": "avg"}}
    assert fit(bert, tmp_path / "m", **how).encoder.dim == 8
    with config_error(r"objective.dims 32: this backbone's vectors have 8"):
        fit(bert, tmp_path / "n", dims=[32, 8], **how)


@parametrize("kind", ["T5", "MT5", "UMT5"])
def test_a_t5_is_loaded_without_its_decoder(tmp_path, kind):
    encoder = load(save_t5(tmp_path / "t5", kind=kind), pooling="avg")
    model = getattr(transformers, f"{kind}EncoderModel")
    theirs = model.from_pretrained(tmp_path / "t5").eval()
    ids = encoder.tokenizer("a cat is playing", return_tensors="pt")["input_ids"]
    expected = theirs(input_ids=ids).last_hidden_state[0].mean(0).detach().numpy()
    assert difference(encoder.encode(["a cat is playing"]), expected[None]) < 1e-6
    encoder.save(tmp_path / "m")
    assert "decoder" not in "".join(load_file(tmp_path / "m/model.safetensors"))
