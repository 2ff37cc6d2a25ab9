"""Samples of search results to be judged, and the verdict by their judgements."""

import re
from collections import Counter

import numpy as np
import polars as pl
from numpy.random import default_rng

from aoe_train import Encoder, evaluate, sample_pairs, search
from aoe_train.evaluation.gain import Gain
from tests.aoe_train.shorthand import aoe, index
from tests.aoe_train.tiny import WORDS, save_bert, unit
from tests.support.shorthand import (
    approx,
    data_error,
    pair_table,
    parametrize,
    raises,
    table,
    values,
)


class Model(Encoder):
    """Given vectors of texts; those of others are random by text and seed."""

    def __init__(self, seed=0, **given):
        self.seed = seed
        self.given = given
        self.encoded = Counter()  # queries and the texts that are searched

    def encode(self, texts, **_):
        drawn = {t: default_rng([self.seed, *t.encode()]).normal(size=3) for t in texts}
        known = drawn | self.given
        return unit(np.float32([known[text] for text in texts]))

    def encode_query(self, texts, **_):
        self.encoded.update(texts)
        return self.encode(texts)

    encode_document = encode_query

    def identity(self):
        return {"seed": self.seed}

    def __repr__(self):
        return f"model {self.seed}"


EAST, NORTH, UP, NEAR_EAST = values("""
    1 | 0 | 0
    0 | 1 | 0
    0 | 0 | 1
    1 | 0.1 | 0
""")
ONE = {"q": EAST, "one": NEAR_EAST, "two": NORTH, "three": UP}
OTHER = {**ONE, "one": NORTH, "two": NEAR_EAST}


@table(
    """
    texts, queries, top, expected, share
    # the first results differ
    one,two,three | q | 1 | one,two | 1
    # the same first two in another order
    one,two | q | 2 | one,two | 1
    # a query with equal results is not judged
    one,two,three | 'q,three ' | 1 | one,two | 0.5
    # a query that is given twice counts once
    one,two | q,q,Q | 1 | one,two | 1
    # the query itself is not a result
    q,one,two | q | 1 | one,two | 1
    # nor is its near-duplicate, or that of a result
    'Q ,one,One,two,TWO  ' | q | 1 | 'One,TWO  ' | 1
    # fewer texts than results
    one,two,three | q | 5 | one,two,three | 1
    """,
)
def test_results_of_queries(texts, queries, top, expected, share):
    texts, queries, expected = (
        words.split(",") for words in (texts, queries, expected)
    )
    models = [Model(0), Model(1)]
    for model, given in zip(models, (ONE, OTHER), strict=True):
        model.given = {text: given[text.strip().lower()] for text in [*texts, *queries]}
    rows = sample_pairs(texts, model=models, queries=queries, top=top).pairs
    assert {*rows["text1"]} == {"q"}
    assert sorted(rows["text2"]) == sorted(expected)
    assert {*rows["query_top"]} == {top}
    assert {*rows["query_share"]} == {share}
    assert {*rows["query_results"]} == {len(expected)}


@table(
    """
    texts, models, options, error, message
    # no words in common
    ab | [{}] | {'queries': ['q']} | DataError | all 2 candidates find the same first 1 for all 1 queries; give more
    ab | [{}, {'a': (1, 0, 0)}] | {'queries': ['q']} | ConfigError | two models are called model 0
    ab | [{}] | {'purpose': ['group', 'match']} | ConfigError | give queries=, or only one
    ab | [{}] | {'queries': ['q'], 'purpose': ['sort']} | ConfigError | 'sort': expected 'group', 'search' or 'match'
    ab | [{}] | {'queries': ['q'], 'purpose': ['group']} | DataError | needs at least 50 texts, .* found 2; leave it out
    ab | [{}, {}] | {} | ConfigError | model 0 and model 0 give
    ab | [{}, {}] | {'queries': ['q']} | ConfigError | give equal vectors
    aA | [{}, {'seed': 1}] | {'queries': ['q']} | DataError | fewer than two distinct
    ab | [{}, {'seed': 1}] | {'queries': ['', ' ']} | DataError | no row has a text
    ab | [{}] | {'columns': {'anchor': 'a'}} | ConfigError | expected one of text, title
    ab | [{}] | {'top': 5} | ConfigError | top=5 needs queries=
    """,
)
def test_what_can_not_be_sampled(texts, models, options, error, message):
    with raises(error, match=message):
        sample_pairs([*texts], model=[Model(**given) for given in models], **options)


def test_texts_of_a_table_are_in_a_named_column():
    table = pl.DataFrame({"Frage": ["one", "two", "three"], "Antwort": ["x", "y", "z"]})
    pairs = sample_pairs(table, model=[Model()], columns={"text": "Frage"}).pairs
    assert {*pairs["text1"], *pairs["text2"]} <= {*table["Frage"]}


def judged_world(queries=250, top=1):
    """Two models, their judged sample and the difference of P@1 over all queries, by brute force.

    Result k of query k is relevant. Vectors of texts are noisy, the second model's more.
    """
    generator = default_rng(0)
    texts = [f"text{n}" for n in range(queries)]
    asked = [f"query{n}" for n in range(queries)]
    true = generator.normal(size=(queries, 8))
    models = [Model(0), Model(1)]
    precision = []
    for model, noise in zip(models, (0.4, 0.6), strict=True):
        vectors = true + noise * generator.normal(size=true.shape)
        model.given = dict(zip([*asked, *texts], [*true, *vectors], strict=True))
        first = (model.encode(asked) @ model.encode(texts).T).argmax(axis=1)
        precision.append(np.mean(first == np.arange(queries)))
    rows = sample_pairs(texts, model=models, queries=asked, top=top).pairs
    relevant = pl.col("text1").str.slice(5) == pl.col("text2").str.slice(4)
    judged = rows.with_columns(label=relevant.cast(pl.Int64))
    return judged, *(model.encode for model in models), precision[0] - precision[1]


def verdict(rows, one, other):
    (gain,) = evaluate(one, against=other, data=rows).gains.values()
    return gain


def test_the_gain_is_that_over_all_queries():
    rows, one, other, difference = judged_world()
    assert rows.height < 400  # all queries with different results
    found = evaluate(one, against=other, data=rows)
    (gain,) = found.gains.values()
    assert gain.word == "better"
    assert gain.ahead.difference == approx(difference)
    assert gain.share == rows["query_share"][0] < 1
    assert gain.pairs == rows["text1"].n_unique()
    assert found.suite == "search"
    assert Gain.of(gain.to_dict()).to_dict() == gain.to_dict()
    back = verdict(rows, other, one)
    assert (back.word, back.ahead.difference) == ("worse", approx(-difference))


def test_queries_with_unjudged_results_are_left_out(capsys):
    rows, one, other, _ = judged_world()
    whole = rows.filter(pl.col("text1") != rows["text1"][0])
    gains = [verdict(each, one, other).to_dict() for each in (rows[1:], whole)]
    assert gains[0] == gains[1]
    evaluate(one, data=rows[1:])
    assert "left out 1 queries with unjudged results" in capsys.readouterr().err
    other_sample = rows[:1].with_columns(query_share=0.9)
    for damaged, message in values(
        """
            GRADED | expected labels 0 and 1
            PARTIAL | no query has judgements of all its
            TWO | several samples
            """,
        GRADED=rows.with_columns(label=0.5),
        PARTIAL=rows.with_columns(query_results=9),
        TWO=pl.concat([rows, other_sample]),
    ):
        with data_error(message):
            verdict(damaged, one, other)


MANY = [f"text{n} {'blue' if n % 7 else 'red'}" for n in range(80)]
ASKED = [f"query{n} red" for n in range(40)]


def candidates(rows):
    ranks = rows.select("^rank of .*$").columns
    return [name.removeprefix("rank of ") for name in ranks]


@table(
    """
    models, purposes, expected
    1 | [] | ['model 0']
    2 | [] | ['model 0', 'model 1']
    1 | ['group', 'match', 'group'] | ['model 0', 'model 0, group', 'model 0, match']
    """,
)
def test_candidates(models, purposes, expected):
    opened = [Model(seed) for seed in range(models)]
    rows = sample_pairs(MANY, model=opened, queries=ASKED, purpose=purposes).pairs
    assert candidates(rows) == [
        f"{name}{words}" for name in expected for words in ("", ", words")
    ]
    for model in opened:
        # Each once, for all candidates.
        assert model.encoded == Counter([*MANY, *ASKED])


@parametrize("top", [1, 3])
def test_the_sheet_has_the_rank_of_each_result(top):
    model = Model()
    rows = sample_pairs(MANY, model=[model], queries=ASKED, top=top).pairs
    cosines = model.encode(ASKED) @ model.encode(MANY).T
    for (query,), results in rows.group_by("text1"):
        for candidate in candidates(rows):
            rank = f"rank of {candidate}"
            found = results.drop_nulls(rank).sort(rank)
            assert found[rank].to_list() == [*range(1, top + 1)]
            if candidate == "model 0":
                nearest = np.argsort(-cosines[ASKED.index(query)])[:top]
                assert found["text2"].to_list() == [MANY[place] for place in nearest]
            else:
                # The word of all queries.
                assert found["text2"].str.ends_with("red").all()
        count = results["query_results"][0]
        assert results.height == count == results["text2"].n_unique()


def test_what_a_purpose_finds_is_what_its_index_finds(tmp_path):
    bert = save_bert(tmp_path / "bert", spread=0.5)
    texts = [
        f"the {one} is near a {other}" for one in WORDS[5:20] for other in WORDS[20:25]
    ]
    asked = [f"is the {word} near" for word in WORDS[5:25:3]]
    how = {"queries": asked, "purpose": ["group", "match"], "top": 2}
    rows = sample_pairs(texts, model=Encoder.load(bert), **how).pairs
    for purpose, named in values("""
            None | ''
            group | , group
            match | , match
            """):
        out = tmp_path / f"index{named}"
        index(sorted(texts), bert, out, purpose=purpose)
        for words, by in values("""
                '' | model
                , words | both
                """):
            name = f"rank of {bert}{named}{words}"
            for (query,), results in rows.group_by("text1"):
                found = results.drop_nulls(name).sort(name)["text2"].to_list()
                assert found == [hit.text for hit in search(out, query, top=2, by=by)]


def judged_candidates(outcomes):
    """A judged sheet in which each candidate's first result is relevant or not, by query."""
    rows = []
    for query, firsts in enumerate(zip(*outcomes.values(), strict=True)):
        for label in {*firsts}:
            row = {"text1": f"q{query}", "text2": f"{label} {query}", "label": label}
            for name, first in zip(outcomes, firsts, strict=True):
                row[f"rank of {name}"] = 1 if first == label else None
            rows.append(row)
    sheet = pl.DataFrame(rows, infer_schema_length=None)
    return sheet.with_columns(
        query_results=pl.len().over("text1"), query_top=1, query_share=0.5
    )


def firsts(better, of=100):
    """Outcomes of queries, of which so many have a relevant first result."""
    return [1] * better + [0] * (of - better)


HALF = firsts(50)


@table(
    r"""
    outcomes, expected
    # the best of those shown to be better
    GOOD | better: C: P@1 50.00 -> 80.00 on 100 queries with .*; \+15.00 \[.*; 98.3 %\] on all queries$
    # no better one
    EQUAL | inconclusive: C: P@1 50.00 -> 50.00 .*; none of 2 candidates is shown to be better than A$
    # a difference of minus a rounding error
    ROUNDED | inconclusive: B: P@1 33.33 -> 33.33 .*; \+0.00 \[[-\d., ]*\] .*
    {'A': 50, 'B': 30} | worse: B: P@1 50.00 -> 30.00 .*; none of 1 candidates is shown to be better than A$
    FEW | inconclusive: B: P@1 50.00 -> 100.00 on 20 queries with different results: too few to tell; .*
    """,
    GOOD={"A": 50, "B": 70, "C": 80, "D": 30},
    EQUAL={"A": HALF, "B": firsts(30), "C": HALF[::-1]},
    ROUNDED={"A": [1, 0, 0] * 20, "B": [0, 1, 0] * 20},
    FEW={"A": firsts(10, 20), "B": firsts(20, 20)},
)
def test_judged_candidates_are_compared_without_a_model(outcomes, expected):
    outcomes = {
        name: firsts(each) if isinstance(each, int) else each
        for name, each in outcomes.items()
    }
    found = evaluate(data=judged_candidates(outcomes))
    (verdict,) = found.verdicts()
    assert re.match(expected, verdict), verdict
    as_csv = judged_candidates(outcomes).cast(pl.String)
    assert evaluate(data=as_csv).to_dict() == found.to_dict()
    with data_error("expected numbers in query_top, query_results, query_share"):
        evaluate(data=as_csv.with_columns(query_top=pl.lit("first")))
    assert [*found.scores] == [*outcomes]
    (shown,) = found.tables()
    assert [row[0] for row in shown.rows] == [*outcomes]
    assert not any(row[-1].startswith("-0.00") for row in shown.rows)
    assert [row[-1] == "–" for row in shown.rows] == [name == "A" for name in outcomes]
    for name, by_task in found.to_dict().items():
        (scores,) = by_task.values()
        assert scores["P@1"] == np.mean(outcomes[name])
        if name != "A":
            difference = np.mean(outcomes[name]) - np.mean(outcomes["A"])
            assert scores["gain"]["difference"] == approx(0.5 * difference)


def test_intervals_of_several_candidates_hold_together():
    outcomes = {"A": HALF, "B": [1] * 60 + [0] * 30 + [1] * 4 + [0] * 6}
    more = {f"C{n}": HALF for n in range(6)}
    alone, together = (
        evaluate(data=judged_candidates(of)).gains["B"]
        for of in (outcomes, outcomes | more)
    )
    assert together.to_dict()["level"] == Gain.of(together.to_dict()).level > 0.99
    assert "level" not in alone.to_dict()
    assert alone.ahead.difference == together.ahead.difference
    assert together.ahead.interval.low < alone.ahead.interval.low
    assert alone.ahead.interval.high < together.ahead.interval.high


def test_recorded_and_measured_results_agree():
    rows, one, other, difference = judged_world(queries=60, top=3)
    recorded = evaluate(data=rows).scores
    found = rows.group_by("text1").max()["label"]
    for name, encode in (("model 0", one), ("model 1", other)):
        (measured,) = evaluate(encode, data=rows).scores.values()
        (ours,) = recorded[name].values()
        (theirs,) = measured.values()
        assert (ours.result.scores, ours.result.n) == (theirs.result.scores, len(found))
        assert (
            ours.result.scores["P@1"] <= ours.result.scores["success@3"] <= found.mean()
        )
    (score,) = recorded["model 1"].values()
    assert score.gain.metric == "P@1"
    assert score.gain.ahead.difference == approx(-difference)


@table(
    """
    data, error, message
    PAIRS | ConfigError | no model to evaluate; give model=
    # a sheet of an older version
    OLD | DataError | has no candidates to compare; sample again with this version's
    ONE | DataError | has no candidates to compare
    """,
    PAIRS=pair_table([("a", "c", 0), ("b", "d", 1)]),
    OLD=judged_candidates({"A": HALF, "B": HALF}).drop("rank of A", "rank of B"),
    ONE=judged_candidates({"A": HALF}),
)
def test_what_needs_a_model(data, error, message):
    with raises(error, match=message):
        evaluate(data=data)


def test_the_command_samples_queries(bert, tmp_path):
    other = save_bert(tmp_path / "other", seed=1, spread=0.5)
    texts = tmp_path / "texts.txt"
    out = tmp_path / "to-judge"
    texts.write_text("".join(f"{word} and {WORDS[0]}\n" for word in WORDS[1:30]))
    command = f"sample-pairs --data {texts} --queries {texts} -m {bert} -m {other} -o {out} -q"
    told = aoe(command)
    assert "differing queries" in told
    rows = pl.read_parquet(out / "data" / "*.parquet")
    assert (rows["text1"] != rows["text2"]).all()
