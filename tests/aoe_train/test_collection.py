"""Purposes: vectors among those of a collection, in indexes, evaluation and encoding."""

import numpy as np
import polars as pl
import pytest

from aoe_train import (
    Encoder,
    duplicates,
    encode,
    evaluate,
    open_index,
    sample_pairs,
    search_every,
)
from aoe_train.model.collection import Collection, drawn
from tests.aoe_train.shorthand import figures
from tests.aoe_train.shorthand import index as build
from tests.aoe_train.test_search import pairs, sentences
from tests.aoe_train.tiny import cosines_of, save_bert, unit, write_lines
from tests.support.shorthand import (
    approx,
    config_error,
    parametrize,
    raises,
    table,
    values,
)

PURPOSES = ("group", "search", "match")
TEXTS = sentences(80)


def grouped(seed=0):
    """Vectors of length 1 in twenty groups of ten, with more noise than group, and the groups."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), 10)
    centres = random.standard_normal((20, 32))[groups]
    noisy = centres + 1.5 * random.standard_normal((200, 32)) + 2
    return unit(noisy).astype(np.float32), groups


@parametrize("purpose", PURPOSES)
def test_a_vector_is_centred_and_moved_to_its_neighbours(purpose):
    vectors, _ = grouped()
    queries = grouped(1)[0][:5]
    centre = vectors.mean(axis=0)
    centred = unit(vectors - centre)
    asked = np.concatenate([queries, vectors[:5]])
    wanted = unit(asked - centre)
    if purpose == "group":
        for moved in wanted:
            # A text isn't its own neighbour.
            others = [other for other in centred if other @ moved < 0.9999]
            # Sqrt(200) / 4.
            nearest = sorted(others, key=lambda other: -float(other @ moved))[:4]
            moved += np.mean(nearest, axis=0)
    found = Collection(vectors, purpose).transform(asked)
    assert found == approx(unit(wanted), abs=1e-5)


def test_a_large_collection_is_represented_by_a_sample():
    assert drawn(60).tolist() == list(range(60))
    chosen = drawn(50_000)
    assert len(np.unique(chosen)) == len(chosen) == 10_000
    assert chosen.tolist() == sorted(chosen)
    assert chosen[-1] > 45_000


def stored(folder, name="searched"):
    return np.load(folder / f"{name}.npy")


@parametrize("quantize", ["float32", "int8"])
def test_another_purpose_encodes_nothing_again_except_for_int8(
    bert, tmp_path, quantize
):
    out, options = tmp_path / "index", {"model": bert, "quantize": quantize}
    build(TEXTS, out=out, **options)
    assert not (out / "searched.npy").exists()
    for purpose in PURPOSES:
        made = build(TEXTS, out=out, purpose=purpose, **options)
        assert made.purpose == purpose
        assert made.encoded == (0 if quantize == "float32" else len(TEXTS))
        fresh = tmp_path / purpose
        build(TEXTS, out=fresh, purpose=purpose, **options)
        for name in ("vectors.npy", "searched.npy", "index.json"):
            assert (out / name).read_bytes() == (fresh / name).read_bytes()
        assert (out / "searched-ranges.npy").exists() == (quantize == "int8")
    more = build([*TEXTS, "the new boat"], out=out, **options)
    assert (more.rows, more.purpose) == (len(TEXTS) + 1, "match")
    assert more.examples == []  # they were shown before
    again = build([*TEXTS, "the new boat"], out=out, purpose="none", **options)
    assert again.purpose is None
    assert not (out / "searched.npy").exists()


def test_a_text_of_the_index_is_found_first_and_words_count_by_purpose(bert, tmp_path):
    for purpose, weight in values("""
            group | 0.9
            search | 0.8
            match | 0.75
            """):
        out = tmp_path / purpose
        build(TEXTS, bert, out, purpose=purpose)
        index = open_index(out)
        (hit,) = index.search(TEXTS[7], by="model", top=1)
        assert (hit.place, hit.cosine) == (7, approx(1, abs=1e-4))
        # No text has this word.
        assert index.search("zzz", top=1)[0].score == approx(weight)
        every = index.search_every(by="model", top=1).hits
        vectors = stored(out)
        nearest = cosines_of(vectors).argmax(axis=1)
        assert every["place2"].to_list() == nearest.tolist()
        assert not np.allclose(vectors, stored(out, "vectors"))


def test_texts_of_which_words_change_the_first_result_are_shown(bert, out, tmp_path):
    made = build(TEXTS, bert, out, purpose="match")
    found = {}
    for by in ("model", "both"):
        hits = search_every(out, by=by, top=1).hits
        # The text itself isn't ranked.
        found[by] = [TEXTS[place] for place in hits["place2"]]
    assert 0 < len(made.examples) <= 10
    for example in made.examples:
        place = TEXTS.index(example.text)
        assert example.by_model == found["model"][place]
        assert example.by_both == found["both"][place]
        assert example.by_model != example.by_both
    assert made.to_dict()["examples"][0]["by_both"] == made.examples[0].by_both
    assert f"  text  {made.examples[0].text}" in made.notes()
    assert not build(TEXTS, bert, tmp_path / "plain").examples


@parametrize("kind", ["flat", "hnsw"])
def test_near_duplicates_are_those_of_the_model(bert, tmp_path, kind):
    if kind == "hnsw":
        pytest.importorskip("faiss")
    build(TEXTS, bert, tmp_path / "plain")
    made = build(TEXTS, bert, tmp_path / "group", purpose="group", kind=kind)
    assert made.recall > 0.9
    wanted, found = (
        duplicates(tmp_path / name, min_cosine=0.8, neighbours=80).pairs
        for name in ("plain", "group")
    )
    assert pairs(found) == pairs(wanted)
    assert found["cosine"].to_numpy() == approx(wanted["cosine"].to_numpy(), abs=1e-5)


def test_evaluation_follows_the_purpose():
    vectors, groups = grouped()
    texts = [f"text {number}" for number in range(200)]
    rows = pl.DataFrame({"text": texts, "group": groups.astype(str)})

    def model(texts):
        return 3 * vectors[[int(text.split()[1]) for text in texts]]  # of any length

    for purpose in (None, *PURPOSES):
        compared = (
            Collection(vectors, purpose).transform(vectors) if purpose else vectors
        )
        options = {"columns": {"text": "text", "group": "group"}, "purpose": purpose}
        scores = figures(evaluate(model, data=rows, resamples=0, **options))
        of_nearest = groups[cosines_of(compared).argmax(axis=1)]
        assert scores["P@1"] == approx((of_nearest == groups).mean())


def test_vectors_of_a_collection_are_those_of_its_index(bert, tmp_path):
    out = tmp_path / "index"
    build(TEXTS, bert, out, purpose="group")
    texts = write_lines(tmp_path / "texts.txt", TEXTS)
    options = {"model": bert, "collection": out}
    file = tmp_path / "vectors.npy"
    encode(texts, out=file, **options)
    assert np.load(file) == approx(stored(out), abs=1e-5)
    assert encode(TEXTS[3], **options) == approx(stored(out)[3], abs=1e-5)
    bits = encode(TEXTS, quantize="ubinary", **options)
    assert (np.unpackbits(bits, axis=1) == (stored(out) > 0)).mean() > 0.99
    with config_error("other settings: collection"):
        encode(texts, out=file, model=bert)


@table(
    """
    change, words
    {'collection': 'plain'} | has no purpose
    {'model': 'other'} | differ from those of
    {'dim': 8} | has 32 dimensions
    {'normalize': False} | have length 1
    {'workers': 2} | encodes in one process
    """,
)
def test_a_collection_that_does_not_fit_is_refused(
    bert, tmp_path, monkeypatch, change, words
):
    monkeypatch.chdir(tmp_path)
    build(TEXTS, bert, "index", purpose="group")
    build(TEXTS, bert, "plain")
    save_bert(tmp_path / "other", seed=9)
    texts = write_lines(tmp_path / "texts.txt", TEXTS)
    with config_error(words):
        encode(texts, out="v.npy", **{"model": bert, "collection": "index", **change})


@table(
    """
    count, purpose, error, words
    49 | group | DataError | needs at least 50 texts
    80 | groups | ConfigError | expected 'group', 'search' or 'match'
    """
)
def test_a_purpose_that_does_not_fit_is_refused(
    bert, out, count, purpose, error, words
):
    with raises(error, match=words):
        build(TEXTS[:count], bert, out, purpose=purpose)
    assert not out.exists()


def test_vectors_of_a_collection_have_the_prompt_for_documents(bert, out):
    prompted = Encoder.load(bert, prompts={"query": "the man: ", "document": "a car: "})
    build(TEXTS, prompted, out, purpose="group")
    options = {"model": prompted, "collection": out}
    assert encode(TEXTS, **options) == approx(stored(out), abs=1e-5)
    query = encode(TEXTS, prompt_name="query", **options)
    assert not np.allclose(query, stored(out), atol=1e-3)


def test_purposes_that_evaluation_cannot_follow_are_refused(bert, tmp_path):
    sheet = sample_pairs(
        TEXTS, model=[bert, save_bert(tmp_path / "other", seed=9)], queries=TEXTS
    ).pairs.with_columns(label=1.0)
    with config_error("compares full vectors"):
        evaluate(bert, data=TEXTS, purpose="group", dim=[8])
    with config_error("give it to `aoe sample-pairs`"):
        evaluate(bert, data=sheet, purpose="group")
