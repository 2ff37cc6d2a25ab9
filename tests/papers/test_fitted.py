"""Whitening and flows fitted to vectors, and files of word vectors."""

from __future__ import annotations

import gzip

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from papers.methods.fitted import (
    Flow,
    fit_flow,
    negative_log_likelihood,
    whitened,
    whitening,
    with_flow,
)
from papers.methods.word_vectors import (
    WordVectors,
    bilstm_folder,
    is_word_vectors,
    read_word_vectors,
    write_bilstm,
)
from tests.aoe_train.tiny import unit
from tests.support.shorthand import approx, config_error, data_error, parametrize, table


def drawn(count=400, dim=6):
    generator = np.random.default_rng(0)
    found = generator.normal(size=(count, dim)) @ generator.normal(size=(dim, dim)) + 3
    return np.asarray(found, np.float32)


def test_whitened_vectors_have_unit_covariance_and_keep_the_largest_directions():
    vectors = drawn()
    encode = whitened(lambda texts: vectors[: len(texts)], ["text"] * 400)
    white = encode(["text"] * 400)
    assert white.mean(0) == approx(np.zeros(6), abs=1e-4)
    assert np.cov(white.T, bias=True) == approx(np.eye(6), abs=1e-3)
    weight, _ = whitening(vectors, 2)
    directions = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)[2][:2]
    cosines = np.abs(unit(weight) @ directions.T)
    assert cosines == approx(np.eye(2), abs=1e-3)
    with config_error("expected at most 6, the dimension"):
        whitening(vectors, 7)
    with data_error("span 0 directions"):
        whitening(vectors[:1].repeat(4, 0), None)


def test_log_volume_of_a_flow_is_that_of_its_jacobian():
    torch.manual_seed(0)
    flow = Flow(8).double()
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    vector = torch.randn(8, dtype=torch.float64)
    derivative = torch.autograd.functional.jacobian(lambda v: flow(v).double(), vector)
    assert flow.log_volume.item() == approx(
        torch.linalg.slogdet(derivative).logabsdet.item(), abs=1e-4
    )


def test_fitting_a_flow_raises_the_likelihood_and_is_deterministic():
    vectors = drawn(300, 8)
    begun = Flow(8)
    begun.initialise(torch.from_numpy(vectors))
    fitted = fit_flow(vectors, seed=1)
    data = torch.from_numpy(vectors)
    assert negative_log_likelihood(fitted, data) < negative_log_likelihood(begun, data)
    again = with_flow(lambda texts: vectors[: len(texts)], ["text"] * 300, seed=1)
    with torch.no_grad():
        assert again(["text"] * 3) == approx(fitted(data[:3]).numpy())
    with data_error("found 1 vectors"):
        fit_flow(vectors[:1])
    with config_error("vectors of 2 dimensions"):
        fit_flow(vectors[:, :2])


def written(path, text):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@parametrize("name", ["w.txt", "w.vec", "w.txt.gz"])
def test_words_are_looked_up_and_averaged(name, tmp_path):
    text = "3 2\n" * name.endswith("vec") + "a 1 0\nit 0 1\n's 2 2\n. . 4 4\na 9 9\n"
    path = written(tmp_path / name, text)
    assert is_word_vectors(str(path))
    vectors, places = read_word_vectors(path)
    # A word may hold spaces; of two the first counts.
    assert (len(vectors), places[". ."]) == (4, 3)
    embed = WordVectors(path)
    assert embed(["A it", "it's", "none known"]).tolist() == [
        [0.5, 0.5],
        [1, 1.5],
        [0, 0],
    ]


@table(
    r"""
    text, row
    'a 1 2\nb 1\n' | 2
    'a 1 x\n' | 1
    'a 1 nan\n' | 1
    'alone\n' | 1
    'a  1 2\nb 1 2\n' | 1
    """,
)
def test_errors_in_word_vector_files_name_the_row(text, row, tmp_path):
    with data_error(rf"w\.txt:{row}: "):
        read_word_vectors(written(tmp_path / "w.txt", text))
    with data_error("no word vectors"):
        read_word_vectors(written(tmp_path / "empty.txt", ""))


def test_padding_does_not_change_a_bilstm_over_word_vectors(tmp_path):
    path = written(tmp_path / "w.txt", "a 1 0 0\ndog 0 1 0\nruns 0 0 1\n")
    write_bilstm(path, tmp_path / "bilstm", size=4)
    model = AutoModel.from_pretrained(tmp_path / "bilstm")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bilstm")
    words = "a dog runs [UNK] [UNK] [UNK]"
    assert tokenizer.tokenize("A dog runs, it's") == words.split()
    together = tokenizer(["a dog runs", "dog"], padding=True, return_tensors="pt")
    alone = tokenizer(["dog"], return_tensors="pt")
    found = model(**together).last_hidden_state[1, : alone["input_ids"].shape[1]]
    torch.testing.assert_close(found, model(**alone).last_hidden_state[0])
    assert bilstm_folder(path, tmp_path) == bilstm_folder(path, tmp_path)
