"""`python -m papers figures`, from pairs and a real, small model to pictures and their numbers."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import polars as pl
from numpy.linalg import norm
from numpy.random import default_rng
from scipy import stats

from papers.figures.curves import read_curves
from papers.figures.densities import density, gold_scores, levels, nearest
from papers.figures.halves import Pairs, Zone, distances, halves
from papers.figures.make import Request, make_figures
from tests.aoe_train.tiny import WORDS, load
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    table,
    values,
)

SMALL = Zone(above=0.5, perplexity=5)
RUN = json.loads("""
{
    "origin": {"settings": {"objective": {"weights": {"cosent": 1.0, "in_batch": 0.0, "angle": 2.0}}}},
    "result": {"dev_metric": "spearman", "dev_before": 0.5, "dev": 0.7},
    "history": [
        {"step": 10, "loss": 9.0, "cosent": 3.0, "angle": 3.0, "learning_rate": 1e-5},
        {"step": 20, "loss": 7.0, "cosent": 3.0, "angle": 2.0, "learning_rate": 0.0}
    ],
    "dev_history": [{"step": 15, "eval_dev": 0.7}, {"step": 20, "eval_dev": 0.6}],
    "best_step": 15
}
""")


def write_run(folder, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({**RUN, **changes}))
    return str(folder)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@module_fixture
def pairs(tmp_path_factory):
    """Forty graded pairs; one text would be a formula to matplotlib, one holds what its font lacks."""
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS, k=6)) for _ in range(78)] + [
        "$x^{2$ costs $5",
        "語\x1b[2J file",
    ]
    rows = [f"{n % 11 / 2}\t{texts[2 * n]}\t{texts[2 * n + 1]}" for n in range(40)]
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n")
    return path


def test_figures_and_numbers_of_vectors(bert, pairs, tmp_path):
    out = tmp_path / "figures"
    request = Request([str(bert)], str(pairs), zone=SMALL)
    printed = make_figures(request, out, lambda _: None)
    before = files(out)
    assert "curves of bert" in printed["left_out"]
    record = json.loads(before.pop("figures.json"))
    names = "densities.png densities.svg halves-bert.png halves-bert.svg pairs.png pairs.svg"
    assert sorted(before) == record["files"] == names.split()
    for name in record["files"][1::2]:
        ElementTree.fromstring(before[name])
    rows = pl.read_csv(pairs, separator="\t", quote_char=None)
    one, other = (
        load(bert).encode(rows[name].to_list()) for name in ("sentence1", "sentence2")
    )
    lengths = norm(one.astype(float), axis=1) * norm(other.astype(float), axis=1)
    cosines = (one.astype(float) * other).sum(1) / lengths
    panel = record["densities"]["models"]["bert"]
    expected = stats.spearmanr(cosines.round(12), rows["score"]).statistic
    assert panel["spearman"] == approx(expected, rel=1e-5)
    assert panel["saturated"] == approx((np.abs(cosines) > 0.95).mean())
    found = record["halves"]["bert"]
    apart = norm(one[:, 16:] - other[:, 16:], axis=1)[found["numbers"]]
    assert found["original"]["imaginary"]["values"] == approx(apart, rel=1e-4)
    again = tmp_path / "again"
    make_figures(replace(request, kind="halves"), again, lambda _: None)
    for name in ("halves-bert.png", "halves-bert.svg"):
        assert (again / name).read_bytes() == before[name]
    (out / "notes.txt").write_text("mine")
    # The record of another tool doesn't make its files ours.
    for listed in (record["files"], ["notes.txt", *record["files"]], 3):
        (out / "figures.json").write_text(json.dumps({"files": listed}))
        with config_error(r"has .*, which isn't part of a set of figures"):
            make_figures(request, out, lambda _: None)


def test_figures_of_a_dataset(tmp_path):
    (tmp_path / "data").mkdir()
    for split, long in values("""
            train | 600
            test | 4
            """):
        first = "word " * long
        rows = f"""text1,text2,label,repo
{first},e f g,0,r/0
a b c,a b d,1,r/1
a b c,a b d,1,r/1
a b c,e f g,0,r/0
"""
        (tmp_path / "data" / f"{split}.csv").write_text(rows)
    request = Request((), str(tmp_path / "data"), kind="pairs")
    found = make_figures(request, tmp_path / "out", lambda _: None)
    assert found["files"] == ["pairs.png", "pairs.svg"]
    assert found["pairs"]["long_texts"] == {"train": 1 / 8, "test": 0}
    assert found["pairs"]["mean_overlap"]["1-gram"] == {"negative": 0, "positive": 50}
    assert found["pairs"]["sources"] == {"r/0": 4, "r/1": 4}


def test_curves_of_runs(tmp_path):
    models = [write_run(tmp_path / name) for name in ("one", "two")]
    printed = make_figures(
        Request(models, kind="curves"), tmp_path / "out", lambda _: None
    )
    assert printed["files"] == ["curves.png", "curves.svg"]
    found = read_curves(models[0])
    assert (found.loss.x.tolist(), found.loss.y.tolist()) == ([10, 20], [9, 7])
    # in_batch had no weight; the learning rate is no part
    assert list(found.parts) == ["cosent", "angle"]
    assert (found.dev.metric, found.dev.best_step) == ("spearman", 15)
    assert (found.dev.curve.x.tolist(), found.dev.curve.y.tolist()) == (
        [0, 15, 20],
        [0.5, 0.7, 0.6],
    )
    none = write_run(
        tmp_path / "none", result={"dev_metric": None}, dev_history=[], best_step=None
    )
    assert read_curves(none).dev is None
    with config_error("only model folders of `aoe train` have curves"):
        read_curves("minilm")
    for changes, message in values("""
            {'history': []} | the history is empty
            {'history': 3} | no readable
            """):
        with data_error(message):
            read_curves(write_run(tmp_path / "bad", **changes))


def test_a_density_is_the_mean_of_reflected_kernels_and_has_area_one():
    values = default_rng(0).beta(8, 1, 300)
    curve = density(values, (-0.5, 1.0), bounds=(-1, 1))
    assert np.trapezoid(curve.y, curve.x) == approx(1, abs=1e-3)
    width = 0.9 * min(values.std(ddof=1), stats.iqr(values) / 1.34) * 300**-0.2
    kernels = stats.norm.pdf(
        curve.x[100], [*values, *(2 - values), *(-2 - values)], width
    )
    assert curve.y[100] == approx(kernels.sum() / 300)
    # Equal values are a narrow peak.
    assert density(np.full(9, 0.3), (0, 1)).y.max() < 200


@table(
    """
    labels, expected
    [0, 1, 1] | [0, 1]
    [0, 0.4, 1.2, 2.9, 3.3, 4.6, 4.8] | [0, 1, 2, 3, 4, 5]
    [1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 2] | [1, 1.2, 1.4, 1.6, 1.8, 2]
    """
)
def test_groups_by_gold_score(labels, expected):
    labels = np.array(labels, float)
    assert levels(labels) == approx(expected)
    assert gold_scores(labels).pairs.sum() == len(labels)
    assert nearest(np.array([0.49, 0.5]), np.array([0, 1])).tolist() == [0, 1]


def made(dim=8):
    vectors = default_rng(0).normal(size=(60, dim))
    rows = np.arange(60).reshape(-1, 2)
    texts = [*map(str, range(30))]
    labels, cosines = np.linspace(0, 5, 30), np.linspace(-1, 1, 30)
    return Pairs("made", texts, texts, labels, vectors, rows, cosines)


def test_halves_of_the_pairs_in_the_zone():
    found = halves(made(), Zone(above=0.5, perplexity=3), model="m")
    assert found.in_zone == len(found.numbers) == 15
    vectors = made().vectors
    apart = norm(vectors[30::2, :4] - vectors[31::2, :4], axis=1)
    assert found.original.real.values == approx(apart)
    fewer = halves(made(), Zone("all", most=12, perplexity=3), model="m")
    assert (fewer.in_zone, len(fewer.numbers), len(fewer.samples)) == (30, 12, 5)
    points = np.array([[0.0, 0], [3, 4]])
    once = distances(points, 2 * points, np.array([[0, 1]]))
    assert (once.real.mean, once.imaginary.mean, once.imaginary_larger) == (5, 10, 1)


@table(
    """
    kind, given, message
    Zone | {'rule': 'score'} | --zone score: expected gold, cosine, all
    Zone | {'above': 1} | --above 1
    Zone | {'perplexity': 1} | --perplexity 1
    Request | {'models': ['m'], 'kind': 'pies'} | --kind pies
    Request | {'models': ['m', 'm']} | given twice
    Request | {'models': ['m'], 'saturation': 1} | --saturation 1
    Request | {'models': ['m'], 'kind': 'halves'} | needs --data
    Request | {'models': [], 'data': 'x.tsv', 'kind': 'densities'} | densities needs --model
    """,
    Zone=Zone,
    Request=Request,
)
def test_invalid_requests(kind, given, message):
    with config_error(message):
        kind(**given)


def test_vectors_without_halves_and_too_few_texts():
    with config_error("an odd dimension"):
        halves(made(7), Zone(perplexity=3), model="m")
    with data_error("needs 92 texts or more"):
        halves(made(), Zone(), model="m")
