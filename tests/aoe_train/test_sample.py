"""Samples of search results to be judged, and the verdict by their judgements."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from numpy.random import default_rng

import aoe_train
from aoe_train import Encoder, evaluate, sample_pairs, search
from pairkit import ConfigError, DataError
from tests.aoe_train.refusals import config_error, data_error
from tests.aoe_train.shell import aoe
from tests.aoe_train.tiny import WORDS, save_bert


class Model(Encoder):
    """Given vectors of texts; those of others are random by text and seed."""

    def __init__(self, seed=0, **given):
        self.seed, self.given = seed, dict[str, Sequence[float]](given)
        self.encoded = Counter()  # queries and the texts that are searched

    def encode(self, texts, **_):
        vectors = np.array([self.given.get(text, self._random(text)) for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode_query(self, texts, **options):
        self.encoded.update(texts)
        return self.encode(texts, **options)

    encode_document = encode_query

    def identity(self):
        return {"seed": self.seed}

    def __repr__(self):
        return f"model {self.seed}"

    def _random(self, text):
        return default_rng([self.seed, *text.encode()]).normal(size=3).tolist()


def sampled(texts, models, **options):
    return sample_pairs(texts, model=models, **options)


EAST, NORTH, UP, NEAR_EAST = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0.1, 0)
ONE = {"q": EAST, "one": NEAR_EAST, "two": NORTH, "three": UP}
OTHER = {**ONE, "one": NORTH, "two": NEAR_EAST}
CASES = {
    # texts, queries, top, results by query, share of queries that differ
    "the first results differ": (["one", "two", "three"], ["q"], 1, {"q": {"one", "two"}}, 1),
    "the same first two in another order": (["one", "two"], ["q"], 2, {"q": {"one", "two"}}, 1),
    "a query with equal results is not judged": (
        ["one", "two", "three"],
        ["q", "three "],
        1,
        {"q": {"one", "two"}},
        0.5,
    ),
    "a query that is given twice counts once": (
        ["one", "two"],
        ["q", "q", "Q"],
        1,
        {"q": {"one", "two"}},
        1,
    ),
    "the query itself is not a result": (["q", "one", "two"], ["q"], 1, {"q": {"one", "two"}}, 1),
    "nor is its near-duplicate, or that of a result": (
        ["Q ", "one", "One", "two", "TWO  "],
        ["q"],
        1,
        {"q": {"One", "TWO  "}},
        1,
    ),
    "fewer texts than results": (
        ["one", "two", "three"],
        ["q"],
        5,
        {"q": {"one", "two", "three"}},
        1,
    ),
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
    found = {}
    for query, result in rows.select("text1", "text2").rows():
        found.setdefault(query, set()).add(result)
    assert found == expected
    assert rows["query_top"].unique().to_list() == [top]
    assert rows["query_share"].unique().to_list() == [share]
    assert rows["query_results"].to_list() == [len(expected[query]) for query in rows["text1"]]


REFUSED = {
    "one model and no words in common": (
        ["a", "b"],
        [Model()],
        {"queries": ["q"]},
        DataError,
        "all 2 candidates find the same first 1 for all 1 queries; give more queries, other models or a",
    ),
    "two models of one name": (
        ["a", "b"],
        [Model(), Model(a=(1, 0, 0))],
        {"queries": ["q"]},
        ConfigError,
        "two models are called model 0",
    ),
    "purposes without queries": (
        ["a", "b"],
        [Model()],
        {"purpose": ["group", "match"]},
        ConfigError,
        "give queries=, or only one",
    ),
    "an unknown purpose": (
        ["a", "b"],
        [Model()],
        {"queries": ["q"], "purpose": ["sort"]},
        ConfigError,
        "purpose = 'sort': expected 'group', 'search' or 'match'",
    ),
    "a purpose for few texts": (
        ["a", "b"],
        [Model()],
        {"queries": ["q"], "purpose": ["group"]},
        DataError,
        "needs at least 50 texts, .* found 2; leave it out",
    ),
    "equal vectors, pairs": (
        ["a", "b"],
        [Model(), Model()],
        {},
        ConfigError,
        "model 0 and model 0 give",
    ),
    "equal vectors, queries": (
        ["a", "b"],
        [Model(), Model()],
        {"queries": ["q"]},
        ConfigError,
        "give equal vectors",
    ),
    "no difference": (
        ["one", "two"],
        [Model(**ONE), Model(1, **{**ONE, "q": NEAR_EAST})],
        {"queries": ["q"]},
        DataError,
        "all 4 candidates find the same first 1 for all 1 queries",
    ),
    "one text": (
        ["a", "A"],
        [Model(), Model(1)],
        {"queries": ["q"]},
        DataError,
        "fewer than two distinct",
    ),
    "no query": (
        ["a", "b"],
        [Model(), Model(1)],
        {"queries": ["", " "]},
        DataError,
        "no row has a text",
    ),
    "another role than text": (
        ["a", "b"],
        [Model()],
        {"columns": {"anchor": "a"}},
        ConfigError,
        "expected one of text, title",
    ),
    "results without queries": (
        ["a", "b"],
        [Model()],
        {"top": 5},
        ConfigError,
        "top=5 needs queries=",
    ),
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


def judged_world(queries=250, top=1, noise=0.4):
    """Two models, their judged sample and the difference of P@1 over all queries, by brute force.

    Result k of query k is relevant. Vectors of texts are noisy; `noise` is the first model's.
    """
    generator = default_rng(0)
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


def verdict(rows, one, other):
    found = evaluate(one, against=other, data=rows)
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
    for queries, noise, words in (
        (250, 0.6, "with different results; "),
        (25, 0.4, "too few to tell"),
    ):
        gain, _ = verdict(*judged_world(queries, noise=noise)[:3])
        assert gain.word == "inconclusive"
        assert words in str(gain)


def test_several_first_results():
    rows, one, other, _ = judged_world(queries=60, top=3)
    (scores,) = evaluate(one, data=rows).to_dict().values()
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
    evaluate(one, data=rows[1:])
    assert "left out 1 queries with unjudged results" in capsys.readouterr().err
    for damaged, message in (
        (rows.with_columns(label=pl.lit(0.5)), "expected labels 0 and 1"),
        (rows.with_columns(query_results=pl.lit(9)), "no query has judgements of all its results"),
        (pl.concat([rows, rows[:1].with_columns(query_share=pl.lit(0.9))]), "several samples"),
    ):
        with data_error(message):
            verdict(damaged, one, other)


MANY = [f"text{n} red" if n % 7 == 0 else f"text{n} blue" for n in range(80)]
ASKED = [f"query{n} red" for n in range(40)]


def candidates(rows):
    return [name.removeprefix("rank of ") for name in rows.columns if name.startswith("rank of ")]


@pytest.mark.parametrize(
    ("models", "purposes", "expected"),
    [
        (1, [], ["model 0", "model 0, words"]),
        (2, [], ["model 0", "model 0, words", "model 1", "model 1, words"]),
        (
            1,
            ["group", "match", "group"],
            [
                f"model 0{purpose}{words}"
                for purpose in ("", ", group", ", match")
                for words in ("", ", words")
            ],
        ),
    ],
)
def test_candidates(models, purposes, expected):
    opened = [Model(seed) for seed in range(models)]
    rows = sampled(MANY, opened, queries=ASKED, purpose=purposes).pairs
    assert candidates(rows) == expected
    for model in opened:
        assert model.encoded == Counter([*MANY, *ASKED])  # each once, for all candidates


@pytest.mark.parametrize("top", [1, 3])
def test_the_sheet_has_the_rank_of_each_result(top):
    model = Model()
    rows = sampled(MANY, [model], queries=ASKED, top=top).pairs
    cosines = model.encode(ASKED) @ model.encode(MANY).T
    nearest = {
        query: [MANY[place] for place in np.argsort(-of_query)[:top]]
        for query, of_query in zip(ASKED, cosines, strict=True)
    }
    for (query,), results in rows.group_by("text1"):
        for candidate in candidates(rows):
            found = results.filter(pl.col(f"rank of {candidate}").is_not_null()).sort(
                f"rank of {candidate}"
            )
            assert found[f"rank of {candidate}"].to_list() == [*range(1, top + 1)]
            if candidate == "model 0":
                assert found["text2"].to_list() == nearest[query]
            else:
                assert found["text2"].str.ends_with("red").all()  # the word of all queries
        assert results.height == results["query_results"][0] == results["text2"].n_unique()


def test_what_a_purpose_finds_is_what_its_index_finds(tmp_path):
    save_bert(tmp_path / "bert", spread=0.5)
    texts = [f"the {one} is near a {other}" for one in WORDS[5:20] for other in WORDS[20:25]]
    asked = [f"is the {word} near" for word in WORDS[5:25:3]]
    rows = sampled(
        texts, str(tmp_path / "bert"), queries=asked, purpose=["group", "match"], top=2
    ).pairs
    for purpose in (None, "group", "match"):
        about = {
            "model": tmp_path / "bert",
            "out": tmp_path / f"index {purpose}",
            "purpose": purpose,
        }
        index = aoe_train.index(sorted(texts), **about)
        for words, by in (("", "model"), (", words", "both")):
            name = f"rank of {tmp_path / 'bert'}{f', {purpose}' if purpose else ''}{words}"
            for (query,), results in rows.group_by("text1"):
                hits = search(index.out, query, top=2, by=by)
                found = results.drop_nulls(name).sort(name)["text2"].to_list()
                assert found == [hit.text for hit in hits]


def judged_candidates(outcomes, share=0.5):
    """A judged sheet in which each candidate's first result is relevant or not, by query."""
    number = len(next(iter(outcomes.values())))
    rows = []
    for query in range(number):
        firsts = {name: relevant[query] for name, relevant in outcomes.items()}
        for label in {*firsts.values()}:
            ranks = {
                f"rank of {name}": 1 if first == label else None for name, first in firsts.items()
            }
            rows.append(
                {"text1": f"q{query}", "text2": f"{label} {query}", "label": label, **ranks}
            )
    sheet = pl.DataFrame(rows, infer_schema_length=None)
    about = {"query_top": pl.lit(1), "query_share": pl.lit(share)}
    return sheet.with_columns(query_results=pl.len().over("text1"), **about)


def ahead(by, of=100):
    """Outcomes of queries: better than `HALF` on this many of them, and never worse."""
    return [1] * (of // 2 + by) + [0] * (of // 2 - by)


HALF = ahead(0)
VERDICTS = {
    "the best of those shown to be better": (
        {"A": HALF, "B": ahead(20), "C": ahead(30), "D": ahead(-20)},
        r"better: C: P@1 50.00 -> 80.00 on 100 queries with .*; \+15.00 \[.*\] on all queries$",
    ),
    "no better one": (
        {"A": HALF, "B": ahead(-20), "C": [*reversed(HALF)]},
        r"inconclusive: C: P@1 50.00 -> 50.00 .*; none of 2 candidates is shown to be better than A$",
    ),
    "a difference of minus a rounding error": (
        {"A": [1, 0, 0] * 20, "B": [0, 1, 0] * 20},
        r"inconclusive: B: P@1 33.33 -> 33.33 .*; \+0.00 \[.*",
    ),
    "worse ones": (
        {"A": HALF, "B": ahead(-20)},
        r"worse: B: P@1 50.00 -> 30.00 .*; none of 1 candidates is shown to be better than A$",
    ),
    "few queries": (
        {"A": ahead(0, 20), "B": ahead(10, 20)},
        "inconclusive: B: P@1 50.00 -> 100.00 on 20 queries with different results: too few to tell; .*",
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_judged_candidates_are_compared_without_a_model(case):
    outcomes, expected = VERDICTS[case]
    found = evaluate(data=judged_candidates(outcomes))
    (verdict,) = found.verdicts()
    assert re.match(expected, verdict), verdict
    assert [*found.scores] == [*outcomes]
    (table,) = found.tables()
    assert [row[0] for row in table.rows] == [*outcomes]
    assert not any(row[-1].startswith("-0.00") for row in table.rows)
    assert [row[-1] == "–" for row in table.rows] == [True] + [False] * (len(outcomes) - 1)
    for name, by_task in found.to_dict().items():
        (scores,) = by_task.values()
        assert scores["P@1"] == np.mean(outcomes[name])
        if name != "A":
            assert scores["gain"]["difference"] == pytest.approx(
                0.5 * (np.mean(outcomes[name]) - np.mean(outcomes["A"]))
            )


def test_intervals_of_several_candidates_hold_together():
    outcomes = {"A": HALF, "B": [1] * 60 + [0] * 30 + [1] * 4 + [0] * 6}
    more = {f"C{n}": ahead(0) for n in range(6)}
    alone, together = (
        evaluate(data=judged_candidates(of)).gains["B"] for of in (outcomes, outcomes | more)
    )
    assert alone.ahead.difference == together.ahead.difference
    assert together.ahead.interval.low < alone.ahead.interval.low
    assert alone.ahead.interval.high < together.ahead.interval.high


def test_several_equal_candidates_are_hardly_ever_better_by_chance():
    """Seven others, compared one by one, yield a better one in about 18 of 100 samples; together in 3."""
    generator, alone, together = default_rng(0), 0, 0
    for _ in range(20):
        first = generator.random(150) < 0.5
        draws = generator.random((8, 150)) < 0.5
        is_drawn = generator.random((8, 150)) < 0.3
        others = {
            f"B{n}": np.where(is_drawn[n], draws[n], first).astype(int).tolist() for n in range(7)
        }
        outcomes = {"A": first.astype(int).tolist(), **others}
        found = evaluate(data=judged_candidates(outcomes), resamples=300)
        together += "better" in [gain.word for gain in found.gains.values()]
        for name in others if alone < 2 else ():
            pair = judged_candidates({"A": outcomes["A"], name: outcomes[name]})
            (gain,) = evaluate(data=pair, resamples=300).gains.values()
            if gain.word == "better":
                alone += 1
                break
    assert together <= 1 < alone


def test_recorded_and_measured_results_agree():
    rows, one, other, difference = judged_world(queries=60, top=3)
    recorded = evaluate(data=rows).scores
    for name, encode in (("model 0", one), ("model 1", other)):
        (measured,) = evaluate(encode, data=rows).scores.values()
        (ours,), (theirs,) = recorded[name].values(), measured.values()
        assert (ours.result.scores, ours.result.n) == (theirs.result.scores, theirs.result.n)
    (score,) = recorded["model 1"].values()
    assert score.gain is not None
    assert score.gain.ahead.difference == pytest.approx(-difference)


NO_MODEL = {
    "pairs": (
        pl.DataFrame({"text1": ["a", "b"], "text2": ["c", "d"], "label": [0, 1]}),
        ConfigError,
        "no model to evaluate; give model=",
    ),
    "a sheet of an older version": (
        judged_candidates({"A": HALF, "B": HALF}).drop("rank of A", "rank of B"),
        DataError,
        "has no candidates to compare; sample again with this version's",
    ),
    "one candidate": (judged_candidates({"A": HALF}), DataError, "has no candidates to compare"),
}


@pytest.mark.parametrize("case", NO_MODEL)
def test_what_needs_a_model(case):
    data, error, message = NO_MODEL[case]
    with pytest.raises(error, match=message):
        evaluate(data=data)


def test_the_command_samples_queries(bert, tmp_path):

    save_bert(tmp_path / "other", seed=1, spread=0.5)
    (tmp_path / "texts.txt").write_text("".join(f"{word} and {WORDS[0]}\n" for word in WORDS[1:30]))
    arguments = (
        "sample-pairs",
        "--data",
        tmp_path / "texts.txt",
        "--queries",
        tmp_path / "texts.txt",
    )
    models = ("--model", bert, "--model", tmp_path / "other", "--out", tmp_path / "to-judge", "-q")
    told = aoe(*arguments, *models)
    assert "differing queries" in told
    assert aoe(*arguments, *models) == told  # finished before
    rows = pl.read_parquet(tmp_path / "to-judge" / "data" / "*.parquet")
    assert (rows["text1"] != rows["text2"]).all()
    with config_error("made from other inputs or with other settings"):
        aoe(*arguments, *models, "--top", "2")
