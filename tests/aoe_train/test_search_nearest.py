"""The nearest vectors: beside sorting all of them, and by the indexes of faiss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.model.quantization import quantized, value_ranges
from aoe_train.searching import nearest as module
from aoe_train.searching.build import measure
from aoe_train.searching.nearest import INDEX_FILE, IndexVectors, Searcher, build, nearest, read
from pairkit.app.errors import DataError


def unit(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12), st.integers(1, 9), st.data())
def test_nearest_is_what_sorting_all_gives_ties_in_order_of_place(seed, rows, count, block, data):
    # Few different numbers, so that many scores are equal
    random = np.random.default_rng(seed)
    vectors, queries = (random.integers(0, 3, (size, 2)).astype(np.float32) for size in (rows, 3))
    places = data.draw(st.none() | st.lists(st.integers(0, rows - 1), unique=True, min_size=1).map(sorted))
    allowed = None if places is None else np.array(places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found = nearest(IndexVectors(vectors), queries, count, allowed)
    every = np.arange(rows) if allowed is None else allowed
    for row, query in enumerate(queries):
        scores = vectors[every] @ query
        order = np.lexsort((every, -scores))[:count]
        wanted = [*every[order], *[-1] * (count - len(order))]
        assert found.places[row].tolist() == wanted
        assert found.scores[row, : len(order)].tolist() == scores[order].tolist()


def test_int8_stands_for_the_middle_of_its_steps():
    vectors = unit(50, 16)
    ranges = value_ranges([vectors])
    stored = IndexVectors(quantized(vectors, "int8", ranges), ranges)
    assert np.abs(stored.rows(slice(None)) - vectors).max() < (ranges[1] - ranges[0]).max() / 255
    assert nearest(stored, vectors[:5], 1).places[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_an_index_finds_most_of_the_nearest_and_has_the_same_bytes_again(tmp_path: Path):
    pytest.importorskip("faiss")
    random = np.random.default_rng(3)
    vectors = (
        unit(40, 32)[random.integers(0, 40, 3000)] + random.normal(size=(3000, 32)).astype(np.float32) * 0.1
    )
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        build(IndexVectors(vectors), "hnsw", folder)
    one, two = ((folder / INDEX_FILE).read_bytes() for folder in folders)
    assert one == two
    searcher = Searcher(IndexVectors(vectors), read(folders[0], "hnsw"))
    assert measure(IndexVectors(vectors), searcher) > 0.8
    found = searcher.nearest(vectors[:4], 10)
    assert found.places[:, 0].tolist() == [0, 1, 2, 3]
    exact = np.take_along_axis(vectors[:4] @ vectors.T, found.places, axis=1)
    assert found.scores == pytest.approx(exact, abs=1e-6)


def test_a_filter_is_kept_by_an_index_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(module, "_FEW", 100)
    vectors = unit(2000, 16)
    searcher = Searcher(IndexVectors(vectors), build(IndexVectors(vectors), "hnsw", tmp_path))
    for allowed in (np.arange(0, 2000, 2), np.arange(0, 2000, 40)):  # by the index, and by comparing with all
        found = searcher.nearest(vectors[:5], 10, allowed)
        assert np.isin(found.places, allowed).all()
        assert found.places[0, 0] == 0


def test_a_damaged_index_is_refused(tmp_path: Path):
    pytest.importorskip("faiss")
    (tmp_path / INDEX_FILE).write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match="not readable; build the index again"):
        read(tmp_path, "hnsw")
