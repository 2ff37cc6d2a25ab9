"""Scores of your own tasks as JSON and as tables."""

import json
import re

import numpy as np

from aoe_train import evaluate, tasks
from tests.support.shorthand import config_error, data_error, pair, text_table


class Hits:
    """A task in which the share of correct examples is the model's quality."""

    def __init__(self, name, n=40, metrics=("accuracy",)):
        self.name, self.n, self.metrics = name, n, metrics
        self.texts = [f"{name} {place}" for place in range(n)]

    def measure(self, vectors):
        right = np.arange(self.n) < vectors.matrix[0, 0] * self.n
        values = dict.fromkeys(self.metrics, right.astype(float))
        if "never" in values:
            values["never"] = np.full(self.n, np.nan)
        first = tasks.MeanMetrics({"accuracy": values["accuracy"][:10]})
        parts = {"first": (first, 10), "odd": (None, 1)}
        return tasks.TaskMetrics(tasks.MeanMetrics(values), parts)


def model(name, quality):
    """A model whose vectors contain its quality."""

    def encode(texts):
        return np.full((len(texts), 1), quality, np.float32)

    encode.__name__ = name
    return encode


MINE, OTHER = model("mine", 0.75), model("other", 0.5)


def evaluated(*models, **options):
    two = [Hits("MR"), Hits("CR", 20)]
    how = {"tasks": two, "resamples": 200, "seed": 1, **options}
    return evaluate(models or MINE, **how)


def test_own_tasks_may_have_a_suites_name():
    assert evaluated(suite="tracker").to_dict()["MR"]["accuracy"] == 0.75


class Returns(Hits):
    """A task with these metrics."""

    def __init__(self, **values):
        super().__init__("MR")
        self.values = values

    def measure(self, _):
        return tasks.MeanMetrics(self.values)


def test_tasks_that_cannot_be_scored():
    with config_error("several are named MR; give each its own name"):
        evaluated(tasks=[Hits("MR"), Hits("MR")])
    with config_error("tasks: 7 isn't a task; expected an object with name, texts and"):
        evaluated(tasks=[7])
    for wrong, message in (
        (Hits("MR", 0), "no texts to encode"),
        (Returns(), "expected the same number of values in each"),
        (Returns(a=[]), r"have \[0\] values"),
        (Returns(a=[0.5], b=[0.5, 1]), r"have \[1, 2\] values"),
    ):
        with data_error(message):
            evaluated(tasks=[wrong])


def test_json_of_scores():
    found = evaluated(against=OTHER).to_dict()["MR"]
    low, high = found["ci95"]["accuracy"]
    assert low < found["accuracy"] == 0.75 < high
    assert found["n"] == 40
    assert found["subsets"] == {"first": {"accuracy": 1.0, "n": 10}, "odd": {"n": 1}}
    against = found["against"]["accuracy"]
    assert (against["value"], against["difference"]) == (0.5, 0.25)
    assert against["ci95"][0] < 0.25 < against["ci95"][1]
    assert 0 < against["p"] < 0.05
    plain = evaluated(resamples=0).to_dict()["MR"]
    assert plain.keys() == {"accuracy", "n", "overlap", "subsets"}
    assert plain["overlap"] is None
    without = evaluated(against=OTHER, resamples=0).to_dict()["MR"]["against"]
    assert without == {"accuracy": {"value": 0.5}}
    never = [Hits("T", metrics=["accuracy", "never"])]
    undefined = evaluated(tasks=never, against=OTHER).to_dict()["T"]
    assert (undefined["never"], undefined["ci95"]["never"]) == (None, None)
    assert undefined["against"]["never"] == {"value": None}
    assert json.loads(json.dumps(undefined, allow_nan=False)) == undefined


def test_tables_of_one_task_or_many_metrics_have_no_mean():
    many = [Hits(name, metrics=["accuracy", "b", "c", "d"]) for name in ("MR", "CR")]
    for given, names in (([Hits("MR")], ["MR"]), (many, ["MR"] * 4 + ["CR"] * 4)):
        assert [row[0] for row in evaluated(tasks=given).tables()[0].rows] == names
    assert evaluated(MINE, OTHER).verdicts() == []


def test_tables_and_markdown():
    whole, ahead = evaluated(against=OTHER).tables(subsets=True)
    assert whole.headings == ("task", "accuracy", "n")
    first, *parts = whole.rows
    assert first[1].startswith("75.00 [")
    assert parts[:2] == [("  first", "100.00", "10"), ("  odd", "–", "1")]
    assert [row[0] for row in parts[2:]] == ["CR", "  first", "  odd", "mean of 2"]
    assert parts[-1] == ("mean of 2", "75.00", "")
    assert ahead.headings == ("task", "metric", "mine", "other", "difference", "p")
    assert ahead.rows[0][:4] == ("MR", "accuracy", "75.00", "50.00")
    assert ahead.rows[0][4].startswith("+25.00 [")
    names = ["accuracy", "a", "b", "c"]
    wide = {"tasks": [Hits("T", metrics=names)], "resamples": 0}
    (many,) = evaluated(**wide).tables()  # one metric per row
    assert many.headings == ("task", "metric", "figure", "n")
    assert [row[:3] for row in many.rows] == [("T", name, "75.00") for name in names]
    (both,) = evaluated(MINE, OTHER, **wide).tables()
    assert both.headings == ("model", "T, accuracy", "T, a", "T, b")
    (both,) = evaluated(MINE, OTHER, resamples=0).tables()
    assert both.headings == ("model", "MR, accuracy", "CR, accuracy")
    assert both.rows == [("mine", "75.00", "75.00"), ("other", "50.00", "50.00")]
    page = evaluated(against=OTHER).to_markdown()
    assert "## own tasks: mine minus other, times 100" in page
    assert "95 % bootstrap intervals (200 resamples, seed 1)" in page


def test_markup_in_names_is_not_interpreted():
    hostile = model("[/x]\x1b[31m", 0.5)
    against = str(evaluated(hostile, against=model("[/y]", 0.5)))
    beside = str(evaluated(hostile, OTHER, tasks=[Hits("[/z]")]))
    for shown, name in ((against, "[/y]"), (beside, "[/z]")):
        assert "[/x]\ufffd[31m" in shown
        assert name in shown
        assert "\x1b[31m" not in shown


def test_tables_of_rankings():
    texts = ["apple pie", "apple tart", "plum cake", "plum jam"]
    pairs = [pair(*texts[:2]), pair(*texts[2:])]

    def vectors(asked):
        """The first two are equal."""
        places = [max(1, texts.index(text)) for text in asked]
        return np.eye(4, dtype=np.float32)[places]

    found = evaluate(vectors, suite="tracker", data=pairs, resamples=100)
    ranked, ahead = found.tables(subsets=True)
    assert ranked.headings[:3] == ("ranked by", "weight", "recall@1")
    whole = [row for row in ranked.rows if not row[0].startswith(" ")]
    assert [row[:2] for row in whole] == text_table("""
        BM25 |
        TF-IDF |
        vectors |
        vectors + BM25 | 0.65
        vectors + TF-IDF | 0.8
    """)
    assert whole[0][2] == whole[3][2] == "100.00"
    assert ranked.rows[1][0] == "  <128 tokens"
    assert ("vectors + BM25", "BM25") in [row[:2] for row in ahead.rows]
    told = found.to_dict()["vectors + BM25"]["the list given"]
    assert told["weight"] == 0.65
    assert told["over"]["vectors"]["recall@1"].keys() == {"difference", "ci95", "p"}


def test_the_page_plots_gains_and_cosines():
    pairs = [pair(f"a{n}", f"{'BA'[n % 2]}{n}", n % 2) for n in range(40)]

    def separates(texts):
        """Vectors that are equal if the first letters are."""
        return np.float32([[text[0] in "aA", text[0] == "B"] for text in texts])

    def confuses(texts):
        return np.float32([[1, text[0] != "a" and int(text[1:]) % 3] for text in texts])

    confuses.__name__ = "<b>other"
    found = evaluate(separates, data=pairs, against=confuses, resamples=100)
    page = found.to_html()
    headings = " ".join(re.findall("<h2>(.*?)</h2>", page))
    assert headings == "Verdict Scores Gains Cosines"
    assert "<b>other" not in page
    assert f"<p>{found.verdicts()[0].replace('>', '&gt;')}</p>" in page
    gains = found.scores["separates"]["the list given"].comparisons
    assert gains
    assert all(f"<span>the list given: {metric}</span>" in page for metric in gains)
    no, yes = (
        path.split("h1") for path in re.findall(r'd="M0 1(V[^"]+)V1Z"', page)[:2]
    )
    assert (no[:2], no[-2]) == (["V0.0000", "V1.0000"], "V1.0000")  # all at cosine 0
    assert (yes[0], yes[-2]) == ("V1.0000", "V0.0000")  # all at cosine 1
    assert page.count("label 1: 20 pairs") == 2


def test_the_page_has_only_the_plots_that_the_scores_allow():
    without_rival = evaluated(resamples=0).to_html()
    of_searches = evaluated(against=OTHER).to_html()
    assert "<h2>Gains" not in without_rival
    assert "<h2>Gains" in of_searches
    assert "<h2>Cosines" not in without_rival + of_searches
