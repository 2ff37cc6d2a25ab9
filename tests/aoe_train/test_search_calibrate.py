"""Probabilities of hits: logistic regression by hand and beside scikit-learn, and what an index learns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aoe_train
from aoe_train._figures.draw_reliability import draw_reliability
from aoe_train._search.calibrate import Calibration, fit, partners, reliability
from pairkit.agreement import wilson
from pairkit.errors import ConfigError, DataError
from tests.aoe_train.tiny import WORDS


def test_partners_go_both_ways_and_a_text_may_have_none():
    found = partners([("a", "b", 1), ("b", "c", 1), ("a", "d", 0)])
    assert found == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}, "d": set()}


def test_a_fit_is_scikit_learn_s():
    linear = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(1)
    scores = random.uniform(size=(400, 2))
    same = (random.uniform(size=400) < 1 / (1 + np.exp(4 - 5 * scores[:, 0] - 3 * scores[:, 1]))).astype(
        float
    )
    weights = fit(scores, same)
    theirs = linear.LogisticRegression(C=1e3, fit_intercept=False, tol=1e-10, max_iter=1000)
    theirs.fit(np.column_stack([np.ones(400), scores]), same)
    assert weights == pytest.approx(theirs.coef_[0], abs=1e-3)


def test_scores_that_part_all_have_weights_and_one_kind_alone_has_none():
    scores = np.array([[0.1, 0.0], [0.2, 0.0], [0.8, 0.0], [0.9, 0.0]])
    assert np.isfinite(fit(scores, np.array([0.0, 0, 1, 1]))).all()
    for same in (np.zeros(4), np.ones(4)):
        with pytest.raises(DataError, match="of one kind"):
            fit(scores, same)


def test_reliability_by_hand():
    brier, bins = reliability(np.array([0.05, 0.15, 0.15, 1.0]), np.array([0.0, 1, 0, 1]))
    assert brier == pytest.approx((0.05**2 + 0.85**2 + 0.15**2) / 4)
    assert [(one.low, one.hits, one.told, one.seen) for one in bins] == [
        (0.0, 1, 0.05, 0.0),
        (0.1, 2, pytest.approx(0.15), 0.5),
        (0.9, 1, 1.0, 1.0),
    ]


def reports(count: int) -> list[tuple[str, str]]:
    """Pairs that share most of their words."""
    random = np.random.default_rng(4)
    found = []
    for number in range(count):
        words = [*random.choice(WORDS, 5), f"e{number}"]
        found.append((" ".join(words), " ".join([*random.permutation(words), str(random.choice(WORDS))])))
    return found


def labelled(tmp_path: Path, same: list[tuple[str, str]]) -> Path:
    """Validation and test pairs, each text once with its partner and once with another."""
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for name, part in (("validation", same[:60]), ("test", same[60:])):
        rows = [(one, other, 1) for one, other in part]
        rows += [(one[0], other[1], 0) for one, other in zip(part, [*part[1:], part[0]], strict=True)]
        pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row").write_csv(pairs / f"{name}.csv")
    return pairs


def test_an_index_learns_how_probable_its_hits_are(bert: Path, tmp_path: Path):
    same = reports(90)
    pairs = labelled(tmp_path, same)
    texts = [text for pair in same for text in pair]
    out = tmp_path / "index"
    made = aoe_train.index(texts, model=bert, out=out, calibrate=pairs, cache=False, progress=False)
    learnt = made.calibration
    assert learnt is not None
    assert (learnt.split, learnt.judged, learnt.with_partner) == ("validation", "test", 120)
    assert learnt.hits == 120 * 10  # of validation, not of test
    hits = aoe_train.search(out, same[70][0], model=bert)
    assert hits[0].text == same[70][0]
    assert {hit.text for hit in hits[:2]} == set(same[70])
    assert hits[1].probability is not None
    assert hits[1].probability > 0.5 > max(hit.probability or 0 for hit in hits[2:])
    assert learnt.brier < 0.1 * 0.9  # of who always tells how many of ten hits are partners
    assert all(hit.probability is None for hit in aoe_train.search(out, same[70][0], model=bert, by="model"))
    again = json.loads((out / "calibration.json").read_text())
    assert again["weights"] == learnt.weights


def test_reliability_is_drawn_where_it_is_asked_for(bert: Path, tmp_path: Path):
    same = reports(60)
    texts, out = [text for pair in same for text in pair], tmp_path / "index"
    options = {"model": bert, "out": out, "cache": False, "progress": False}
    with pytest.raises(ConfigError, match=r"--figure: .*give --calibrate, too"):
        aoe_train.index(texts, figure=True, **options)
    pairs = tmp_path / "pairs.csv"
    rows = [(one, other, 1) for one, other in same]
    rows += [(one[0], other[1], 0) for one, other in zip(same, [*same[1:], same[0]], strict=True)]
    pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row").write_csv(pairs)
    aoe_train.index(texts, calibrate=pairs, figure=True, **options)
    drawn = {path.name: path.read_bytes() for path in out.glob("reliability.*")}
    assert sorted(drawn) == ["reliability.png", "reliability.svg"]
    aoe_train.index(texts, calibrate=pairs, figure=True, **options)  # a drawn one is an index as any other
    assert {path.name: path.read_bytes() for path in out.glob("reliability.*")} == drawn


def test_a_figure_has_a_point_for_each_tenth_with_its_interval():
    figure = draw_reliability([0.05, 0.96], [0.1, 0.9], [100, 10], title="of test")
    above, below = figure.axes
    points = next(line for line in above.lines if line.get_marker() == "o")
    assert np.column_stack(points.get_data()).tolist() == [[0.05, 0.1], [0.96, 0.9]]
    (reach,) = above.containers[0].lines[2]
    ends = [segment[:, 1].tolist() for segment in reach.get_segments()]
    assert ends == [pytest.approx(wilson(10, 100)), pytest.approx(wilson(9, 10))]
    bars = [(round(bar.get_x(), 6), bar.get_height()) for bar in below.patches]
    assert bars == [(0.0, 100), (0.9, 10)]
    figure.draw_without_rendering()
    assert "100" in [label.get_text() for label in below.get_yticklabels()]  # and no formula


def test_pairs_of_an_index_are_as_probable_as_hits_of_each_other(bert: Path, tmp_path: Path):
    same = reports(90)
    texts = [text for pair in same for text in pair]
    out, quiet = tmp_path / "index", {"cache": False, "progress": False}
    aoe_train.index(texts, model=bert, out=out, calibrate=labelled(tmp_path, same), **quiet)
    found = aoe_train.duplicates(out, probability=0.5, neighbours=180, progress=False)
    told = dict(
        zip(found.pairs.select("place1", "place2").iter_rows(), found.pairs["probability"], strict=True)
    )
    assert set(told) == {(place, place + 1) for place in range(0, 180, 2)}  # the partners, and no others
    assert found.pairs["probability"].is_sorted(descending=True)
    hits = [
        next(hit for hit in aoe_train.search(out, texts[one], model=bert) if hit.place == other)
        for one, other in ((4, 5), (5, 4))
    ]
    assert told[4, 5] == pytest.approx(sum(hit.probability or 0 for hit in hits) / 2, abs=1e-4)
    assert "probability" in str(found.table())
    # Every pair that is so probable is found, since no words make up for a lower cosine than is looked at.
    every = aoe_train.duplicates(out, least=-1, neighbours=180, progress=False).pairs
    assert every.filter(pl.col("probability") >= 0.5).height == len(told)
    other = tmp_path / "new"
    aoe_train.index([texts[4]], model=bert, out=other, **quiet)
    asked = aoe_train.duplicates(out, probability=0.5, against=other, progress=False).pairs
    likely = {hit.place: hit.probability for hit in aoe_train.search(out, texts[4], model=bert)}
    assert dict(asked.select("place2", "probability").iter_rows()) == pytest.approx(
        {place: likely[place] for place in (4, 5)}, abs=1e-4
    )
    with pytest.raises(ConfigError, match="knows no probabilities; run `aoe index` with --calibrate"):
        aoe_train.duplicates(other, probability=0.5, progress=False)
    with pytest.raises(ConfigError, match="probability 1: expected a number between 0 and 1"):
        aoe_train.duplicates(out, probability=1, progress=False)


@given(
    st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9)),
    st.floats(0.01, 0.99),
    st.floats(-1, 1),
    st.floats(0, 1),
)
def test_no_words_make_up_for_a_lower_cosine(weights: tuple, probability: float, cosine: float, words: float):
    told = calibration(weights)
    if cosine < told.lowest_cosine(probability) - 1e-9:
        assert told.probability(np.array([[cosine, words]]))[0] < probability


def calibration(weights: tuple[float, ...]) -> Calibration:
    numbers = {"texts": 0, "with_partner": 0, "hits": 0, "brier": 0.0}
    return Calibration(weights=list(weights), split="test", judged="test", reliability=[], **numbers)


def test_a_text_that_stands_twice_is_no_hit_for_itself(bert: Path, tmp_path: Path):
    same = reports(60)
    rows = [(one, other, 1) for one, other in same]
    rows += [(one[0], other[1], 0) for one, other in zip(same, [*same[1:], same[0]], strict=True)]
    rows += [(one, one, 1) for one, _ in same]  # which tells nothing
    pairs = pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row")
    texts = [text for pair in same for text in pair]
    for name, every in (("once", texts), ("twice", texts * 2)):
        aoe_train.index(every, model=bert, out=tmp_path / name, cache=False, progress=False)
    opened = {name: aoe_train.open_index(tmp_path / name, words_only=True) for name in ("once", "twice")}
    # Of twice as many places there are twice as many hits, all but the asked text's own two.
    once, twice = (
        index.calibrate(pairs, top=top) for index, top in zip(opened.values(), (9, 19), strict=True)
    )
    assert (once.hits, twice.hits) == (120 * 9, 120 * 18)
    near = np.array([[1.0, 0.9]])
    assert twice.probability(near) == pytest.approx(once.probability(near), abs=0.05)
    assert once.with_partner == twice.with_partner == 120


def test_pairs_of_other_texts_teach_nothing(bert: Path, tmp_path: Path):
    aoe_train.index(WORDS[:20], model=bert, out=tmp_path / "index", cache=False, progress=False)
    opened = aoe_train.open_index(tmp_path / "index", words_only=True)
    rows = [{"text1": "one", "text2": "two", "label": 1}, {"text1": "one", "text2": "six", "label": 0}]
    with pytest.raises(DataError, match="texts are in the index with a partner"):
        opened.calibrate(rows)
    with pytest.raises(DataError, match="labels are scores"):
        opened.calibrate([{**row, "label": 0.3} for row in rows])
    (tmp_path / "index" / "calibration.json").write_text('{"format": 9}')
    with pytest.raises(DataError, match="calibration"):
        aoe_train.open_index(tmp_path / "index", words_only=True)
