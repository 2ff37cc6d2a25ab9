"""Samples of search results to be judged, and the verdict by their judgements."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import aoe_train
from pairkit import ConfigError, DataError

Vectors = Callable[[Sequence[str]], np.ndarray]


class Model(aoe_train.Encoder):
    """Given vectors of texts; those of others are random by text and seed."""

    def __init__(self, seed: int = 0, **given: Sequence[float]) -> None:
        self.seed, self.given = seed, dict[str, Sequence[float]](given)

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        vectors = np.array([self.given.get(text, self._random(text)) for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_query(self, texts: Any, **options: Any) -> np.ndarray:
        return self.encode(texts, **options)

    encode_document = encode_query

    def identity(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def __repr__(self) -> str:
        return f"model {self.seed}"

    def _random(self, text: str) -> list[float]:
        return np.random.default_rng([self.seed, *text.encode()]).normal(size=3).tolist()


def sampled(texts: Any, models: Sequence[Any], **options: Any) -> aoe_train.PairSample:
    return aoe_train.sample_pairs(texts, model=models, progress=False, **options)


EAST, NORTH, UP, NEAR_EAST = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0.1, 0)
ONE = {"q": EAST, "one": NEAR_EAST, "two": NORTH, "three": UP}
OTHER = {**ONE, "one": NORTH, "two": NEAR_EAST}
CASES: dict[str, tuple[list[str], list[str], int, dict[str, set[str]], float]] = {
    # texts, queries, top, results by query, share of queries that differ
    "the first results differ": (["one", "two", "three"], ["q"], 1, {"q": {"one", "two"}}, 1),
    "the same first two in another order": (["one", "two"], ["q"], 2, {"q": {"one", "two"}}, 1),
    "a query with equal results is not judged": (
        *(["one", "two", "three"], ["q", "three "], 1, {"q": {"one", "two"}}, 0.5),
    ),
    "a query that is given twice counts once": (["one", "two"], ["q", "q", "Q"], 1, {"q": {"one", "two"}}, 1),
    "the query itself is not a result": (["q", "one", "two"], ["q"], 1, {"q": {"one", "two"}}, 1),
    "nor is its near-duplicate, or that of a result": (
        *(["Q ", "one", "One", "two", "TWO  "], ["q"], 1, {"q": {"One", "TWO  "}}, 1),
    ),
    "fewer texts than results": (["one", "two", "three"], ["q"], 5, {"q": {"one", "two", "three"}}, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_results_of_queries(case):
    texts, queries, top, expected, share = CASES[case]
    models = []
    for seed, given in enumerate((ONE, OTHER)):
        spelled = {text: given[text.strip().lower()] for text in [*texts, *queries]}
        models.append(model := Model(seed))
        model.given |= spelled
    rows = sampled(texts, models, queries=queries, top=top).pairs
    found: dict[str, set[str]] = {}
    for query, result in rows.select("text1", "text2").rows():
        found.setdefault(query, set()).add(result)
    assert found == expected
    assert rows["query_top"].unique().to_list() == [top]
    assert rows["query_share"].unique().to_list() == [share]
    assert rows["query_results"].to_list() == [len(expected[query]) for query in rows["text1"]]


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], type[Exception], str]] = {
    "one model": (["a", "b"], [Model()], {"queries": ["q"]}, ConfigError, "two models, found 1"),
    "equal vectors, pairs": (["a", "b"], [Model(), Model()], {}, ConfigError, "model 0 and model 0 give"),
    "equal vectors, queries": (
        *(["a", "b"], [Model(), Model()], {"queries": ["q"]}, ConfigError, "give equal vectors"),
    ),
    "no difference": (
        *(["one", "two"], [Model(**ONE), Model(1, **{**ONE, "q": NEAR_EAST})], {"queries": ["q"]}, DataError),
        "both models find the same first 1 for all 1 queries",
    ),
    "one text": (["a", "A"], [Model(), Model(1)], {"queries": ["q"]}, DataError, "fewer than two distinct"),
    "no query": (["a", "b"], [Model(), Model(1)], {"queries": ["", " "]}, DataError, "no row has a text"),
    "another role than text": (
        *(["a", "b"], [Model()], {"columns": {"anchor": "a"}}, ConfigError, "expected one of text, title"),
    ),
    "results without queries": (["a", "b"], [Model()], {"top": 5}, ConfigError, "top=5 needs queries="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_sampled(case):
    texts, models, options, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        sampled(texts, models, **options)


def test_texts_of_a_table_are_in_a_named_column():
    table = pl.DataFrame({"Frage": ["one", "two", "three"], "Antwort": ["x", "y", "z"]})
    pairs = sampled(table, [Model()], columns={"text": "Frage"}).pairs
    assert {*pairs["text1"], *pairs["text2"]} <= {"one", "two", "three"}


def judged_world(
    queries: int = 250, top: int = 1, noise: float = 0.4
) -> tuple[pl.DataFrame, Vectors, Vectors, float]:
    """Two models, their judged sample and the difference of P@1 over all queries, by brute force.

    Result k of query k is relevant. Vectors of texts are noisy; `noise` is the first model's.
    """
    generator = np.random.default_rng(0)
    texts, asked = [f"text{n}" for n in range(queries)], [f"query{n}" for n in range(queries)]
    true = generator.normal(size=(queries, 8))
    models, precision = [], []
    for seed, own in enumerate((noise, 0.6)):
        vectors = true + own * generator.normal(size=true.shape)
        model = Model(seed, **dict(zip(asked, true.tolist(), strict=True)))
        model.given |= dict(zip(texts, vectors.tolist(), strict=True))
        models.append(model)
        first = (model.encode(asked) @ model.encode(texts).T).argmax(axis=1)
        precision.append(np.mean(first == np.arange(queries)))
    rows = sampled(texts, models, queries=asked, top=top).pairs
    relevant = [query[5:] == result[4:] for query, result in rows.select("text1", "text2").rows()]
    judged = rows.with_columns(pl.Series("label", relevant).cast(pl.Int64))
    return judged, models[0].encode, models[1].encode, precision[0] - precision[1]


def verdict(rows: pl.DataFrame, one: Vectors, other: Vectors) -> tuple[Any, aoe_train.Evaluation]:
    found = aoe_train.evaluate(one, against=other, data=rows, progress=False)
    (gain,) = found.gains.values()
    return gain, found


def test_the_gain_is_that_over_all_queries():
    rows, one, other, difference = judged_world()
    assert rows.height < 400  # all queries with different results
    gain, found = verdict(rows, one, other)
    assert gain.word == "better"
    assert gain.ahead.difference == pytest.approx(difference)
    assert gain.share == rows["query_share"][0] < 1
    assert gain.pairs == rows["text1"].n_unique()
    assert found.suite == "search"
    assert type(gain).of(gain.to_dict()).to_dict() == gain.to_dict()
    back, _ = verdict(rows, other, one)
    assert (back.word, back.ahead.difference) == ("worse", pytest.approx(-difference))


def test_verdicts():
    for queries, noise, words in ((250, 0.6, "with different results; "), (25, 0.4, "too few to tell")):
        gain, _ = verdict(*judged_world(queries, noise=noise)[:3])
        assert gain.word == "inconclusive"
        assert words in str(gain)


def test_several_first_results():
    rows, one, other, _ = judged_world(queries=60, top=3)
    (scores,) = aoe_train.evaluate(one, data=rows, progress=False).to_dict().values()
    success = rows.group_by("text1").agg(pl.col("label").max(), pl.len())
    assert scores["n"] == success.height
    assert scores["P@1"] <= scores["success@3"] <= success["label"].mean()
    assert verdict(rows, one, other)[0].metric == "P@1"


def test_queries_with_unjudged_results_are_left_out(capsys):
    rows, one, other, _ = judged_world()
    first = rows["text1"][0]
    whole = rows.filter(pl.col("text1") != first)
    gains = [verdict(each, one, other)[0].to_dict() for each in (rows[1:], whole)]
    assert gains[0] == gains[1]
    aoe_train.evaluate(one, data=rows[1:])
    assert "left out 1 queries with unjudged results" in capsys.readouterr().err
    for damaged, message in (
        (rows.with_columns(label=pl.lit(0.5)), "expected labels 0 and 1"),
        (rows.with_columns(query_results=pl.lit(9)), "no query has judgements of all its results"),
        (pl.concat([rows, rows[:1].with_columns(query_share=pl.lit(0.9))]), "several samples"),
    ):
        with pytest.raises(DataError, match=message):
            verdict(damaged, one, other)
