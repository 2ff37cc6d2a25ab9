"""Static models: distilled from others, equal to sentence-transformers', and uses that need a network refused."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from safetensors.numpy import save, save_file
from scipy import sparse
from tokenizers import Tokenizer

from aoe_train import distill, export, index, search, train
from aoe_train.exporting.static_model import (
    fit,
    held_out,
    plain_tokenizer,
    rarity,
    token_shares,
    written_tokens,
)
from tests.aoe_train.shorthand import aoe_json
from tests.aoe_train.test_model_folder import list_modules
from tests.aoe_train.test_search import sentences
from tests.aoe_train.tiny import (
    bytelevel,
    card_of,
    edit,
    load,
    read_json,
    sentence_transformer,
    wordpiece,
    write_lines,
)
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    pair,
    parametrize,
    table,
)

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


def test_token_frequencies_by_hand():
    plain = plain_tokenizer(wordpiece())
    shares = token_shares(plain, ["the dog the", "", "a cat"])
    the, dog, cat, a = (plain.token_to_id(word) for word in ("the", "dog", "cat", "a"))
    assert shares[0, the] == approx(2 / 3)
    assert shares[0, dog] == approx(1 / 3)
    assert shares[1].nnz == 0
    assert shares[2, [a, cat]].toarray().ravel().tolist() == [0.5, 0.5]
    cut = token_shares(plain, ["the dog the"], longest=1)
    assert cut[0, the] == 1
    assert cut.nnz == 1
    weights = rarity(sparse.csr_matrix([[1.0, 0, 0], [0.5, 0.5, 0]]))
    assert weights == approx([0.001 / 0.751, 0.001 / 0.251, 1])


def test_token_texts_exclude_special_and_incomplete_ones():
    tokenizer = wordpiece()
    written = written_tokens(tokenizer, plain_tokenizer(tokenizer))
    names = tokenizer.get_vocab()
    assert written[names["dog"]] == "dog"
    assert written[names["##b"]] == "b"
    assert {written[number] for number in tokenizer.all_special_ids} == {""}
    of_bytes = bytelevel()
    texts = written_tokens(of_bytes, plain_tokenizer(of_bytes))
    assert not any("\ufffd" in text for text in texts)
    assert {"!", "0"} <= set(texts)


@settings(max_examples=25)
@given(
    st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12), st.floats(0.01, 3)
)
def test_fit_equals_the_dense_solution(seed, texts, tokens, ridge):
    random = np.random.default_rng(seed)
    counts = random.poisson(0.7, (texts, tokens))
    shares = (counts / np.maximum(counts.sum(1, keepdims=True), 1)).astype(np.float32)
    wanted = random.normal(size=(texts, 3)).astype(np.float32)
    prior = random.normal(size=(tokens, 3)).astype(np.float32)
    meant = shares @ prior
    scale = (meant * wanted).sum() / (meant**2).sum() if meant.any() else 0
    dense = np.linalg.solve(
        shares.T @ shares + ridge * np.eye(tokens),
        shares.T @ wanted + ridge * scale * prior,
    )
    found = fit(sparse.csr_matrix(shares), wanted, prior, ridge)
    assert found == approx(dense, abs=2e-2 * (1 + np.abs(dense).max()))


@pytest.fixture
def texts(tmp_path):
    return write_lines(tmp_path / "texts.txt", sentences(300))


def test_a_loaded_model_has_the_records_of_its_folder(
    bert, texts, tmp_path, monkeypatch
):
    load(bert).save(tmp_path / "m")
    for folder, name in (("", "gpl"), ("m", "mit")):  # "" is another project's
        (tmp_path / folder / "README.md").write_text(f"---\nlicense: {name}\n---\n")
    np.save(tmp_path / "m/training_texts.npy", np.uint64([7]))
    monkeypatch.chdir(tmp_path)
    distill(texts, model=load("m"), out="static")
    assert "license: mit" in card_of(tmp_path / "static")
    assert 7 in np.load("static/training_texts.npy")


@parametrize("dim", [None, 8])
def test_sentence_transformers_reads_the_folder(bert, texts, tmp_path, dim):
    done = distill(texts, model=bert, out=tmp_path / "static", dim=dim)
    assert (done.texts, done.held_out, done.dim) == (285, 15, dim or 32)
    theirs = sentence_transformer(tmp_path / "static")
    kept = held_out(sentences(300))[0]
    assert set(held_out(sentences(300)[::-1])[0]) == set(kept)  # whatever their order
    ours, found = load(bert).encode(kept, normalize=True), theirs.encode(kept)
    assert np.linalg.norm(found, axis=1) == approx(1, abs=1e-5)
    record = read_json(tmp_path / "static" / "run.json")["distill"]
    assert record["agreement"] == done.agreement
    card = card_of(tmp_path / "static")
    assert f"{done.agreement:.3f}" in card
    assert ("8 principal axes" in card) == (dim == 8)
    if dim is None:
        assert (ours * found).sum(1).mean() == approx(done.agreement, abs=1e-5)
        shuffled = (ours * found[::-1]).sum(1).mean()
        assert done.agreement > shuffled + 0.1 * (1 - shuffled)


def test_the_command_and_its_errors(bert, texts, tmp_path):
    static = tmp_path / "static"
    few = write_lines(tmp_path / "few.txt", sentences(50))
    with data_error("found 50 texts; expected at least 105"):
        distill(few, model=bert, out=static)
    with config_error("dim=33: the model's vectors have 32 dimensions"):
        distill(texts, model=bert, out=static, dim=33)
    found = aoe_json(f"distill {texts} -m {bert} -o {static} --json")
    assert found["texts"] == 285
    again = distill(texts, model=bert, out=static)
    assert (again.texts, again.out) == (285, static)
    with config_error("a folder, a Hub id or an Encoder"):
        distill(texts, model=len, out=tmp_path / "other")
