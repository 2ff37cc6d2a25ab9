"""Nearest vectors, hybrid ranking, and the search for each text of an index."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from aoe_train import open_index, search_every
from aoe_train.model.collection import fused
from aoe_train.model.quantization import Int8Vectors, quantized, value_ranges
from aoe_train.searching import nearest as module
from aoe_train.searching.build_index import measured_recall
from aoe_train.searching.nearest import (
    INDEX_FILE,
    Searcher,
    build_faiss,
    nearest,
    read_faiss,
)
from aoe_train.searching.ranking import SearchQuery
from tests.aoe_train.shorthand import aoe, aoe_json, index
from tests.aoe_train.tiny import WORDS, load, unit
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    parametrize,
    values,
)


def drawn(rows, dim):
    """Vectors of length 1."""
    return unit(default_rng(0).normal(size=(rows, dim)).astype(np.float32))


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 9),
    st.data(),
)
def test_nearest_equals_sorting_all(seed, rows, count, block, data):
    # Few different numbers, so that many scores are equal
    random = default_rng(seed)
    vectors, queries = (
        random.integers(0, 3, (size, 2)).astype(np.float32) for size in (rows, 3)
    )
    some = st.lists(st.integers(0, rows - 1), unique=True, min_size=1)
    allowed = data.draw(st.none() | some.map(sorted).map(np.array))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_VECTORS", block)
        found = nearest(vectors, queries, count, allowed)
    every = np.arange(rows) if allowed is None else allowed
    for query, places, near in zip(queries, found.places, found.scores, strict=True):
        scores = vectors[every] @ query
        order = np.lexsort((every, -scores))[:count]
        assert places.tolist() == [*every[order], *[-1] * (count - len(order))]
        assert near[: len(order)].tolist() == scores[order].tolist()


def test_recall_and_reproducible_bytes_of_an_index(tmp_path):
    pytest.importorskip("faiss")
    random = default_rng(3)
    groups = drawn(40, 32)[random.integers(0, 40, 3000)]
    vectors = unit(groups + random.normal(size=(3000, 32)).astype(np.float32) * 0.1)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        build_faiss(vectors, folder)
    one, two = ((folder / INDEX_FILE).read_bytes() for folder in folders)
    assert one == two
    searcher = Searcher(vectors, read_faiss(folders[0], vectors.shape))
    assert measured_recall(vectors, searcher) > 0.8
    found = searcher.nearest(vectors[:4], 10)
    assert found.places[:, 0].tolist() == [0, 1, 2, 3]
    exact = np.take_along_axis(vectors[:4] @ vectors.T, found.places, axis=1)
    assert found.scores == approx(exact, abs=1e-6)


def test_filters_of_an_index_and_damaged_files(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(module, "_MAX_EXACT", 100)
    vectors = drawn(2000, 16)
    ranges = value_ranges([vectors])
    for stored in (
        vectors,
        Int8Vectors(quantized(vectors, "int8", ranges), ranges),
    ):
        searcher = Searcher(stored, build_faiss(stored, tmp_path))
        # By the index, and comparing all.
        for allowed in (np.arange(0, 2000, 2), np.arange(0, 2000, 40)):
            found = searcher.nearest(vectors[:5], 10, allowed)
            assert np.isin(found.places, allowed).all()
            assert found.places[0, 0] == 0
        # All allowed vectors are far from the query.
        far = np.sort(np.argsort(stored[:] @ vectors[0])[:101])
        found = searcher.nearest(vectors[:1], 100, far)
        assert (
            found.places.tolist() == nearest(stored, vectors[:1], 100, far)[1].tolist()
        )
    step = (ranges[1] - ranges[0]).max() / 255
    assert np.abs(stored[:] - vectors).max() < step
    with data_error("isn't hnsw of 1,999 x 16; build the index again"):
        read_faiss(tmp_path, (1999, 16))
    (tmp_path / INDEX_FILE).write_bytes(b"nothing of the kind")
    with data_error("not readable; build the index again"):
        read_faiss(tmp_path, (2000, 16))


def test_fused_scores_by_hand():
    by_vectors, by_words = np.array([0.9, 0.1, 0.5]), np.array([0.0, 4.0, 8.0])
    assert fused(by_vectors, by_words, 0.25) == approx([0.25, 0.375, 0.125 + 0.75])
    # Equal scores.
    assert fused(np.array([0.3, 0.1]), np.zeros(2), 0.5).tolist() == [0.5, 0]
    assert fused(np.zeros(0), np.zeros(0), 0.5).tolist() == []


def dated():
    """Texts of few words with shuffled times, some of them equal and one missing."""
    random = default_rng(3)
    days = random.permutation(40) // 2
    return pl.DataFrame(
        {
            "id": [f"a/b#{number}" for number in range(40)],
            "text": [" ".join(random.choice(WORDS[:12], 5)) for _ in range(40)],
            "day": [*days[:-1].tolist(), None],
        }
    )


@module_fixture
def dated_index(bert, tmp_path_factory):
    out = tmp_path_factory.mktemp("dated") / "index"
    rows = dated().with_columns(
        at=pl.lit("2020-01-") + pl.col("day").cast(pl.String).str.zfill(2)
    )
    index(rows, bert, out)
    return out


@parametrize("by", ["both", "model", "words"])
def test_search_every_equals_single_searches_among_older_rows(bert, dated_index, by):
    found = search_every(dated_index, before="day", top=5.0, by=by)
    assert (found.texts, found.undated) == (39, 1)
    index = open_index(dated_index, model=bert)
    for place, row in enumerate(dated().iter_rows(named=True)):
        own = found.hits.filter(pl.col("place1") == place)
        wanted = (
            []
            if row["day"] is None
            else index.search(row["text"], top=5, before={"day": row["day"]}, by=by)
        )
        assert own["place2"].to_list() == [hit.place for hit in wanted]
        assert own["id_2"].to_list() == [hit.row["id"] for hit in wanted]
        for name in ("score", "cosine", "words"):
            assert own[name].to_list() == approx(
                [getattr(hit, name) for hit in wanted], abs=1e-5
            )
        assert all(day < row["day"] for day in own["day_2"])
    assert found.hits["rank"].max() == 5
    everything = search_every(dated_index, top=100, by="model").hits
    # All others, never itself.
    assert everything.group_by("place1").len()["len"].to_list() == [39] * 40
    assert found.hits.drop_nulls("id_1").height == found.hits.height > 100
    with config_error("before age: no such column; choose from id, text, day, at"):
        index.search_every(before="age")


def test_a_row_with_the_time_nan_is_undated(bert, out):
    day = pl.col("day").cast(pl.Float64).fill_null(np.nan)
    index(dated().with_columns(day), bert, out)
    assert search_every(out, before="day", by="words").undated == 1


def test_search_every_with_a_prompt_for_queries(bert, out, tmp_path):
    encoder = load(bert, prompts={"query": "the dog: "})
    encoder.save(tmp_path / "model")
    texts = dated()["text"][:2].to_list()
    index(dated(), tmp_path / "model", out)
    stored = encoder.encode(texts, normalize=True)
    asked = encoder.encode_query(texts, normalize=True)
    assert np.abs(stored - asked).max() > 1e-4
    for model, own in ((None, stored), (tmp_path / "model", asked)):
        hits = search_every(out, top=39, by="model", model=model).hits
        found = hits.filter(place1=1, place2=0)["cosine"].item()
        assert found == approx(own[1] @ stored[0], abs=1e-6)


def test_a_query_from_standard_input(dated_index):
    text = dated()["text"][3] + "\n" + "x" * 300_000 + "é"
    command = f"search {dated_index} --by words --json"
    found = aoe_json(command, "-", stdin=text)
    assert found == aoe_json(command, text)
    assert found["hits"][0]["row"]["id"] == "a/b#3"


def test_near_duplicates_do_not_depend_on_blocks(monkeypatch):
    # Many equal cosines.
    vectors = default_rng(1).integers(0, 2, (50, 4)).astype(np.float32)
    for neighbours in (2, 60):
        found = []
        for queries, texts, pairs in ((1024, 4096, 1 << 20), (7, 11, 5)):
            monkeypatch.setattr(module, "_BLOCK_QUERIES", queries)
            monkeypatch.setattr(module, "_BLOCK_TEXTS", texts)
            monkeypatch.setattr(module, "_BUFFERED_PAIRS", pairs)
            for asked in (vectors, vectors[:30]):
                compared = module.TextComparison(
                    Searcher(vectors), asked, within=asked is vectors
                )
                similar, full = compared.similar_pairs(
                    2, neighbours=neighbours, show=lambda _: None
                )
                columns = [
                    similar[name].to_list() for name in ("place1", "place2", "cosine")
                ]
                found.append((full, *columns))
        assert found[:2] == found[2:]
        places = [*zip(*found[0][1:3], strict=True)]
        assert len(places) == len({*places})


def test_search_together_equals_single_searches(dated_index, bert):
    index = open_index(dated_index, model=bert)
    queries = []
    for text, (top, by, where) in zip(
        dated()["text"],
        values("""
            3 | both | {}
            4 | model | {}
            5 | both | {'day': 3}
            6 | words | {}
            """),
        strict=False,
    ):
        vector = None if by == "words" else load(bert).encode(text)
        queries.append(SearchQuery(text, vector, top, by, where=where))
    found = index.search_together(queries)
    for query, hits in zip(queries, found, strict=True):
        single = index.search(query.text, top=query.top, where=query.where, by=query.by)
        assert [hit.place for hit in hits] == [hit.place for hit in single]
        assert [hit.score for hit in hits] == approx(
            [hit.score for hit in single], abs=1e-6
        )


def test_search_every_on_the_command_line(bert, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index(dated(), bert, "index")
    for name in ("one.parquet", "two.parquet"):
        flags = f"--every --before day --top 3 --out {name} --json -q"
        assert aoe_json(f"search index {flags}") == {
            "texts": 39,
            "hits": pl.read_parquet("one.parquet").height,
            "undated": 1,
        }
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    for wrong, words in values("""
            --every | expected a TEXT to search for, or both every= and out=
            text --out x | expected a TEXT to search for, or both every= and out=
            --every --out one.parquet | already exists
            --every --out hits.txt | hits.txt.*: expected a name that ends in .csv, .tsv
            --every --out x.parquet --before day=3 | one before=COLUMN and no where=
            """):
        with config_error(words):
            aoe(f"search index {wrong}")
