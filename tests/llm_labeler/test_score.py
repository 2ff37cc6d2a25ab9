"""`evaluate`: labels of LLMs and aggregations against human labels."""

import json

import polars as pl
import pytest

import llm_labeler
from tests.support.shorthand import (
    approx,
    data_error,
    module_fixture,
    pair_table,
    values,
)

WORDS = {"s": "same", "o": "opposite", "u": "unrelated", "?": "unsure"}


def row(text, words, polarity, llms, votes=None):
    """A row of the table; each letter of `llms` is an LLM, each of `votes` a vote of judge 0, 1, …"""
    judge_votes = [
        {"judge": f"j{n}", "vote": WORDS[letter]}
        for n, letter in enumerate(votes or "")
    ]
    return {
        "text_id": text,
        "text": text,
        "candidate": words,
        "polarity": polarity,
        "llms": list(llms),
        "votes": None if votes is None else judge_votes,
        "reason": None,
    }


# People: p1, p2, n1 say the same as "t"; p3, n2, n3 don't.
TABLE = [
    row("t", "p1", "positive", "ab", "ss"),
    row("t", "p2", "positive", "a", "so"),
    row("t", "p3", "positive", "b", "us"),
    row("t", "n1", "negative", "a", "ss"),
    row("t", "n2", "negative", "ab", "ou"),
    row("t", "n3", "negative", "b", "oo"),
    row("t", "nobody labelled this", "negative", "c", "sss"),
]
GOLD = pair_table(
    values("""
        t | p1 | 1
        t | p2 | 1
        t | p3 | 0
        t | n1 | 1
        t | n2 | 0
        t | n3 | 0
    """)
)


def rows(report):
    return {(one.name, one.polarity): one for one in report.rows}


@module_fixture
def score(tmp_path_factory):
    """The report on a table of candidates, in the working folder of a run with these settings."""

    def of_table(gold=GOLD, table=TABLE, threshold=None, **ensemble):
        out = tmp_path_factory.mktemp("score") / "out"
        ensemble = {"min_confidence": 0.5} | ensemble
        settings = {f"ensemble.{name}": value for name, value in ensemble.items()}
        given = {"polarity": "positive", "settings": settings}
        work = llm_labeler.generate(
            ["A text."], llm={"a": lambda _: "1. No text."}, out=out, **given
        ).work
        pl.DataFrame(table).write_parquet(work / "candidates.parquet")
        return llm_labeler.evaluate(gold, work=work, gold_threshold=threshold)

    return of_table


@module_fixture
def report(score):
    return score()


def test_scores_of_llms_computed_by_hand(report):
    a, a_negative = rows(report)["a", "positive"], rows(report)["a", "negative"]
    # a: p1 and p2 right; n1 wrong, n2 right
    assert (a.n, a.precision, a.recall, a.f1) == (2, 1.0, approx(2 / 3), approx(0.8))
    assert (a_negative.n, a_negative.precision, a_negative.recall) == (2, 0.5, 1.0)
    assert (a.kept, a.candidates) == (4, 4)
    assert a.kappa == a_negative.kappa == approx(0.5)  # 3 of 4 alike, by chance 1/2
    assert ("c", "positive") not in rows(report)  # without gold labels


def test_scores_of_aggregations_computed_by_hand(report):
    result = rows(report)
    assert [one.name for one in report.rows if one.by == "aggregation"][::2] == [
        "union",
        "vote",
        "weighted",
    ]
    union = result["union", "positive"]
    assert (union.n, union.precision, union.recall) == (
        3,
        approx(2 / 3),
        approx(2 / 3),
    )
    vote = result["vote", "negative"]  # p1; n2, n3; p2 and p3 undecided, n1 outvoted
    assert (vote.n, vote.precision, vote.recall, vote.kept) == (
        2,
        1.0,
        approx(2 / 3),
        3,
    )
    assert {one.candidates for one in report.rows if one.by == "aggregation"} == {6}
    assert report.judges is not None
    # Including votes without a gold label.
    assert report.judges.by_name["j0"].judged == 7


def test_intervals_and_table(report):
    union = rows(report)["union", "positive"]
    assert union.interval == approx((0.2077, 0.9385), abs=1e-4)
    table = report.table()
    assert len(table.rows) == len(report.rows)
    assert "spearman" not in table.headings
    assert ("union, positive", "3", "0.667", "0.21-0.94") in [
        row[:4] for row in table.rows
    ]
    assert json.loads(json.dumps(report.to_dict()))["gold"] == 6


def test_without_votes_judged_aggregations_are_skipped(score):
    result = score(
        table=pl.DataFrame(TABLE).with_columns(votes=pl.col("votes").list.head(0))
    )
    assert {one.name for one in result.rows if one.by == "aggregation"} == {"union"}
    assert set(result.skipped) == {"vote", "weighted"}
    assert result.judges is None


def test_swapped_pairs_are_scored_with_their_new_polarity(score):
    result = rows(score(reversed_pairs="swap"))["vote", "positive"]
    # P1, and n1 swapped.
    assert (result.n, result.precision, result.recall) == (
        2,
        1.0,
        approx(2 / 3),
    )


def test_matching_ignores_case_space_and_width(score):
    table = [row("Ａ  text\n", "The  Ｗords ", "positive", "a", "s")]
    result = score(
        pair_table([("a TEXT", "the words", 1), ("the words", "a text", 1)]), table
    )
    assert (result.found, result.not_found.examples) == (1, ("the words | a text",))


def test_unmatched_gold_is_reported(score):
    unknown = pair_table([(f"t{n}", "x" * 100, 0) for n in range(7)])
    result = score(pl.concat([GOLD, unknown]))
    assert (result.gold, result.found, result.not_found.count) == (13, 6, 7)
    assert result.not_found.examples == tuple(f"t{n} | {'x' * 60}" for n in range(5))
    undefined = {
        (one.n, one.precision, one.interval, one.f1, one.kappa)
        for one in score(unknown).rows
    }
    assert undefined == {(0, None, None, None, None)}


def test_repeated_and_contradictory_gold_is_reported(score):
    result = score(pl.concat([GOLD, pair_table([("T", "P1", 1), ("t", "n3", 1)])]))
    assert (result.gold, result.repeated, result.contradictory.count) == (5, 1, 1)
    assert result.contradictory.examples == ("t | n3",)
    assert rows(result)["union", "negative"].n == 2


def test_a_sentence_of_both_polarities_is_scored_twice(score):
    result = rows(
        score(
            table=[
                row("t", "p1", "positive", "a", ""),
                row("t", "p1", "negative", "b", ""),
            ]
        )
    )
    assert (result["a", "positive"].precision, result["b", "negative"].precision) == (
        1,
        0,
    )


GRADES = {"p1": 5.0, "p2": 4.0, "p3": 2.0, "n1": 3.0, "n2": 1.0, "n3": 0.0}
GRADED = pair_table([("t", words, grade) for words, grade in GRADES.items()])


def test_graded_labels(score):
    result = score(GRADED)
    assert (result.graded, result.threshold) == (True, 2.5)
    union = rows(result)["union", "positive"]
    assert union.precision == approx(2 / 3)
    scipy_stats = pytest.importorskip("scipy.stats")
    ranks = scipy_stats.spearmanr([1, 1, 1, 0, 0, 0], list(GRADES.values())).statistic
    assert union.spearman == approx(ranks)
    assert rows(result)["weighted", "positive"].spearman is not None
    assert result.table().headings[-1] == "spearman"
    assert rows(score(GRADED, threshold=4))["union", "positive"].recall == 1
    for threshold in ("9", "nan"):
        with data_error(f"gold_threshold='?{threshold}'?: the highest gold label is 5"):
            score(GRADED, threshold=float(threshold))


def test_constant_gold_labels_are_refused(score):
    with data_error(r"all gold labels are 0\.5"):
        score(GOLD.with_columns(label=pl.lit(0.5)))
