"""Whitening by hand, beside numpy's covariance, and as a layer that everybody reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

import aoe_train
from aoe_train import Encoder
from aoe_train._baselines.whitening import whitening
from pairkit.errors import ConfigError, DataError
from tests.aoe_train.tiny import WORDS


def sentences(count: int) -> list[str]:
    random = np.random.default_rng(5)
    return [" ".join(random.choice(WORDS, 6)) for _ in range(count)]


def test_four_vectors_by_hand():
    # Mean (1, 1), covariance diag(2, 1/2): the map is diag(1/sqrt 2, sqrt 2) of x - (1, 1)
    vectors = np.array([[3, 1], [-1, 1], [1, 2], [1, 0]], np.float32)
    weight, bias, variance = whitening(vectors)
    assert weight == pytest.approx(np.diag([0.5**0.5, 2**0.5]))
    assert bias == pytest.approx([-(0.5**0.5), -(2**0.5)])
    assert variance == pytest.approx(1)
    weight, bias, variance = whitening(vectors, 1)
    assert weight == pytest.approx(np.array([[0.5**0.5, 0]]))
    assert variance == pytest.approx(0.8)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(2, 12), st.data())
def test_whitened_vectors_have_mean_zero_and_unit_covariance(seed, numbers, data):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(60, numbers)) @ random.normal(size=(numbers, numbers)) + 3
    kept = data.draw(st.integers(1, numbers))
    weight, bias, variance = whitening(vectors.astype(np.float32), kept)
    white = vectors.astype(np.float32) @ weight.T + bias
    assert white.mean(0) == pytest.approx(np.zeros(kept), abs=1e-2)
    assert np.cov(white.T, bias=True).reshape(kept, kept) == pytest.approx(np.eye(kept), abs=1e-2)
    assert 0 < variance <= 1 + 1e-9


def test_a_space_that_the_texts_do_not_span_is_refused():
    vectors = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    with pytest.raises(DataError, match="4 texts span 3 directions; give more"):
        whitening(vectors, 4)
    assert len(whitening(vectors)[1]) == len(whitening(vectors, 3)[1]) == 3
    for dim in (1, None):
        with pytest.raises(DataError, match="span 0 directions"):
            whitening(np.ones((5, 2), np.float32), dim)
    for wrong in (0, 9):
        with pytest.raises(ConfigError, match="have 8 numbers"):
            whitening(vectors, wrong)


def test_an_export_is_white_for_all_its_readers(bert: Path, tmp_path: Path):
    texts = sentences(80)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    done = aoe_train.export(
        bert, out=tmp_path / "w", whiten=tmp_path / "texts.txt", whiten_dim=10, progress=False
    )
    assert done.whitened is not None
    assert (done.whitened.texts, done.dim) == (len(set(texts)), 10)
    encoder = Encoder.load(tmp_path / "w", device="cpu")
    white = encoder.encode(list(dict.fromkeys(texts)))
    assert np.cov(white.T, bias=True) == pytest.approx(np.eye(10), abs=1e-3)
    theirs = SentenceTransformer(str(tmp_path / "w"), device="cpu").encode(texts[:3])
    assert theirs == pytest.approx(encoder.encode(texts[:3]), abs=1e-4)
    assert json.loads((tmp_path / "w/run.json").read_text())["export"]["whitened"]["dim"] == 10
    assert "10 directions" in (tmp_path / "w/README.md").read_text()


def test_a_second_layer_stands_behind_the_first(bert: Path, tmp_path: Path):
    encoder = Encoder.load(bert, device="cpu", dense=[12])
    encoder.save(tmp_path / "m")
    before = encoder.encode(sentences(3))
    texts = sentences(40)
    done = aoe_train.export(tmp_path / "m", out=tmp_path / "w", whiten=texts, whiten_dim=5, progress=False)
    found = Encoder.load(tmp_path / "w", device="cpu")
    assert [layer.size for layer in found.settings.dense] == [12, 5]
    weight, bias, _ = whitening(encoder.encode(list(dict.fromkeys(texts))), 5)
    assert found.encode(sentences(3)) == pytest.approx(before @ weight.T + bias, abs=1e-3)
    assert done.whitened is not None
    assert 0.5 < done.whitened.variance < 1


def test_what_can_not_be_whitened_is_refused(bert: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="--whiten-dim 8: says what --whiten keeps"):
        aoe_train.export(bert, out=tmp_path / "w", whiten_dim=8, progress=False)
    Encoder.load(bert, device="cpu", dim=16).save(tmp_path / "cut")
    with pytest.raises(ConfigError, match="keeps 16 numbers"):
        aoe_train.export(tmp_path / "cut", out=tmp_path / "w", whiten=sentences(60), progress=False)
    assert not (tmp_path / "w").exists()
