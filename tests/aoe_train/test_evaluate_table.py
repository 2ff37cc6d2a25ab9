"""Scores and their tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from aoe_train import Evaluation
from aoe_train.evaluation.overlap import digests
from aoe_train.evaluation.resample import Comparison, Interval, MeanMetrics
from aoe_train.evaluation.score import Resampling, Score, score
from aoe_train.evaluation.scores import ahead, comparisons, figures, rankings, side_by_side
from aoe_train.evaluation.tasks import Input, Result, TaskMetrics, TaskVectors
from aoe_train.settings.prompt_settings import NamedPrompts
from aoe_train.settings.train_settings import Similarity
from pairkit import ConfigError
from pairkit.base.cli.terminal import out


class Named:
    """An embedder whose vectors contain its quality."""

    identity, separator = "0", " "
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"

    def __init__(self, name: str, good: float) -> None:
        self.name, self.good = name, good

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        return np.full((len(texts), 1), self.good, np.float32)


class Hits:
    """A task in which the share of correct examples is the model's quality."""

    def __init__(self, name: str, n: int = 40, metrics: Sequence[str] = ("accuracy",)) -> None:
        self.name, self.n, self.metrics = name, n, metrics
        self.texts: list[Input] = [f"{name} {place}" for place in range(n)]

    def measure(self, vectors: TaskVectors) -> TaskMetrics:
        right = np.arange(self.n) < vectors.matrix[0, 0] * self.n
        whole = MeanMetrics({metric: right.astype(float) for metric in self.metrics})
        return TaskMetrics(
            whole, {"first": (MeanMetrics({"accuracy": right[:10].astype(float)}), 10), "odd": (None, 1)}
        )


def scored(**options: object) -> dict[str, Score]:
    given = {
        "rival": Named("other", 0.5),
        "trained": digests(["mr 0", "mr 1"]),
        "resamples": Resampling(200, 1),
    }
    return score(Named("mine", 0.75), [Hits("MR"), Hits("CR", 20)], progress=False, **(given | options))  # type: ignore[arg-type]


def test_json_of_a_score():
    found = scored()["MR"].to_dict()
    low, high = found["ci95"]["accuracy"]
    assert low < found["accuracy"] == 0.75 < high
    assert found["n"] == 40
    assert found["subsets"] == {"first": {"accuracy": 1.0, "n": 10}, "odd": {"n": 1}}
    assert found["overlap"] == {"texts": 2, "of_texts": 40, "rows": 2, "of_rows": 40}
    against = found["against"]["accuracy"]
    assert (against["value"], against["difference"]) == (0.5, 0.25)
    assert against["ci95"][0] < 0.25 < against["ci95"][1]
    assert 0 < against["p"] < 0.05


def test_json_without_rival_overlap_or_intervals():
    found = scored(rival=None, trained=None, resamples=Resampling(0))["MR"].to_dict()
    assert (set(found), found["overlap"]) == ({"accuracy", "n", "overlap", "subsets"}, None)
    assert scored(resamples=Resampling(0))["MR"].to_dict()["against"] == {"accuracy": {"value": 0.5}}
    with pytest.raises(ConfigError, match="resamples=50: expected at least 100, or 0"):
        Resampling(50)


def test_tables_and_markdown():
    grid = figures(scored(), "t", subsets=True)
    assert grid.headings == ("task", "accuracy", "n", "trained on")
    assert [row[0] for row in grid.rows] == ["MR", "  first", "  odd", "CR", "  first", "  odd", "mean of 2"]
    assert grid.rows[0][1].startswith("75.00 [")
    assert [row[1:] for row in grid.rows[1:3]] == [("100.00", "10", ""), ("–", "1", "")]
    assert grid.rows[0][2:] == ("40", "5.0%")
    assert grid.rows[-1] == ("mean of 2", "75.00", "", "")
    assert figures(scored(trained=digests(["another"])), "t").headings == ("task", "accuracy", "n")
    ahead_of = comparisons(scored(), "mine", "other", "t")
    assert ahead_of.headings == ("task", "metric", "mine", "other", "difference", "p")
    assert ahead_of.rows[0][:4] == ("MR", "accuracy", "75.00", "50.00")
    assert ahead_of.rows[0][4].startswith("+25.00 [")
    tasks = [Hits("T", metrics=tuple("abcd"))]
    many = score(Named("m", 0.5), tasks, resamples=Resampling(0), progress=False)
    grid = figures(many, "t")  # many metrics stand below one another
    assert grid.headings == ("task", "metric", "figure", "n")
    assert [row[:3] for row in grid.rows] == [("T", metric, "50.00") for metric in "abcd"]
    assert side_by_side({"m": many, "n": many}, "t").headings == ("model", "T, a", "T, b", "T, c")
    assert side_by_side({"m": scored()}, "t").headings == ("model", "MR, accuracy", "CR, accuracy")
    page = Evaluation(
        "sts", {"mine": scored()}, against="other", _resampling=Resampling(200, 1)
    ).to_markdown()
    assert "## sts: mine minus other, times 100" in page
    assert "95 % bootstrap intervals (200 resamples, seed 1)" in page
    assert "- MR: mine was trained on 2 of its 40 examples" in page


def test_markup_in_names_is_not_interpreted(capsys, monkeypatch):
    name = "[/x]\x1b[31m"
    found = scored()
    monkeypatch.setenv("COLUMNS", "200")
    one = Evaluation("sts", {name: found}, against="[/y]")
    several = Evaluation("gis", {name: {"[/z]": found["MR"]}, "other": {"[/z]": found["MR"]}})
    for table in (*one.tables(), *several.tables()):
        out.print(table)
    shown = capsys.readouterr().out
    assert shown.count("[/x]\ufffd[31m") == 3  # a title, a heading and a cell
    assert all(word in shown for word in ("[/y]", "[/z]"))
    assert "\x1b[31m" not in shown


def test_tables_of_rankings():
    part = {"<7 days": Result({"recall@1": 0.5}, 2)}
    gain = Comparison(0.25, Interval(-0.1, 0.6), 0.2)
    scores = {
        "BM25": Score(Result({"recall@1": 0.25, "mrr": 0.375}, 8, subsets=part)),
        "mine + BM25": Score(
            Result({"recall@1": 0.5, "mrr": 0.5}, 8), over={"BM25": {"recall@1": gain}}, weight=0.65
        ),
    }
    grid = rankings(scores, "t", subsets=True)
    assert grid.headings == ("ranked by", "weight", "recall@1", "mrr", "n")
    assert grid.rows == [
        ("BM25", "", "25.00", "37.50", "8"),
        ("  <7 days", "", "50.00", "–", "2"),
        ("mine + BM25", "0.65", "50.00", "50.00", "8"),
    ]
    assert ahead(scores, "t").rows == [("mine + BM25", "BM25", "+25.00 [-10.00, 60.00]", "–")]
    found = scores["mine + BM25"].to_dict()
    assert found["weight"] == 0.65
    assert found["over"] == {"BM25": {"recall@1": {"difference": 0.25, "ci95": [-0.1, 0.6], "p": 0.2}}}
