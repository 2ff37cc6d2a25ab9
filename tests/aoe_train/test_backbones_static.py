"""Static models: vectors equal sentence-transformers', and uses that need a network are refused."""

from functools import partial

import numpy as np
import pytest
from numpy.random import default_rng
from safetensors.numpy import save, save_file
from tokenizers import Tokenizer

from aoe_train import export, index, search, train
from tests.aoe_train.test_model_folder import list_modules
from tests.aoe_train.test_search import sentences
from tests.aoe_train.tiny import edit, load, sentence_transformer
from tests.support.shorthand import approx, config_error, data_error, pair, table

DIM = 12
TEXTS = [*sentences(60), "", "  ", "\u4f60\u597d \U0001f600", "a man " * 700]


@pytest.fixture
def static(bert, tmp_path):
    """Writes a folder."""
    return partial(write_static, tmp_path / "model", bert)


def write_static(folder, bert, path="", dense=False, cut=None):
    """A folder as written by sentence-transformers, with a random table."""
    part = folder / path
    part.mkdir(parents=True)
    raw = Tokenizer.from_file(str(bert / "tokenizer.json"))
    raw.no_truncation()
    if cut is not None:
        raw.enable_truncation(cut)
    raw.save(str(part / "tokenizer.json"))
    table = default_rng(0).normal(size=(raw.get_vocab_size(), DIM)).astype(np.float32)
    save_file({"embedding.weight": table}, part / "model.safetensors")
    kinds = ["StaticEmbedding", *(["Dense"] if dense else []), "Normalize"]
    places = [path, *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], 1))]
    if dense:
        shape = {"in_features": DIM, "out_features": 5, "bias": False}
        edit(folder / places[1] / "config.json", **shape)
        matrix = default_rng(1).normal(size=(5, DIM)).astype(np.float32)
        save_file({"linear.weight": matrix}, folder / places[1] / "model.safetensors")
    list_modules(folder, dict(zip(places, kinds, strict=True)))
    return folder


@table(
    """
    form
    {}
    {'path': '0_StaticEmbedding'}
    {'dense': True}
    {'cut': 7}
    """
)
def test_vectors_equal_sentence_transformers(static, form):
    folder = static(**form)
    encoder = load(folder)
    theirs = sentence_transformer(folder).encode(TEXTS)
    found = encoder.encode(TEXTS)
    assert np.abs(found - theirs).max() <= 1e-6
    assert (found[60:62] == 0).all()  # they have no token, and are no error
    assert encoder.settings.max_length == form.get("cut")
    assert encoder.encode("a dog") == approx(encoder.encode(["a dog", TEXTS[0]])[0])


def test_model2vec_folders_with_mapping_and_weights(static):
    folder = static()
    tokens = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    random = default_rng(2)
    parts = {
        "embeddings": random.normal(size=(9, DIM)).astype(np.float16),
        "mapping": random.integers(0, 9, tokens),
        "weights": random.uniform(0.1, 1, tokens),
    }
    save_file(parts, folder / "model.safetensors")
    list_modules(folder, {".": "StaticEmbedding", "1_Normalize": "Normalize"})
    (folder / "config.json").write_text(
        '{"model_type": "model2vec", "hidden_dim": 12, "normalize": true}'
    )
    theirs = sentence_transformer(folder).encode(TEXTS)
    # Which rounds to float16 between.
    assert np.abs(load(folder).encode(TEXTS) - theirs).max() < 1e-3
    parts["mapping"][3] = 9
    save_file(parts, folder / "model.safetensors")
    with data_error("mapping: expected the index of a row for each token"):
        load(folder)


@table(
    """
    settings, named
    {'pooling': 'max'} | encoder.pooling max: a static model averages
    {'layers': 1} | encoder.layers: a static
    {'include_prompt': False} | include_prompt false
    {'bidirectional': True} | encoder.bidirectional
    {'precision': 'int8'} | fewer bits: not possible for a static model
    """,
)
def test_settings_that_need_a_network_are_refused(static, settings, named):
    with config_error(named):
        load(static(), **settings)


def test_training_saving_and_export_are_refused(static, out):
    folder = static()
    rows = [pair("a dog", "the dog"), pair("a dog", "the cat", 0)]
    with config_error(r"training: not possible .*`aoe distill`"):
        train(rows * 8, backbone=folder, out=out)
    with config_error("not possible for a static model"):
        load(folder).save(out)
    with config_error("export: not possible for a static model"):
        export(folder, out=out)
    assert not out.exists()


FIVE = np.zeros((5, DIM), np.float32)


@table(
    """
    file, content, message
    model.safetensors | FEW | vectors of 5 tokens, but the tokenizer has a token number
    model.safetensors | OTHER | contains no table
    model.safetensors | EMPTY | not readable
    tokenizer.json | b'{"version": "1.0"}' | no tokenizer
    """,
    FEW=save({"embedding.weight": FIVE}),
    OTHER=save({"other": FIVE}),
    EMPTY=b"\0" * 20,
)
def test_damaged_folders(file, content, message, static):
    folder = static()
    (folder / file).write_bytes(content)
    with data_error(message):
        load(folder)


def test_an_index_accepts_a_static_model(static, out):
    index(sentences(30), model=static(), out=out)
    (hit,) = search(out, sentences(30)[4], by="model", top=1)
    assert (hit.place, hit.cosine) == (4, approx(1, abs=1e-5))
