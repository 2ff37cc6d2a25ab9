import json
from collections import Counter
from itertools import groupby
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from tests.pairkit.review_material import Reviewer, ann_at, judge_all, rows, text_in
from tests.support.shorthand import config_error, data_error, pair, table

EVIDENCE = {"kind": "closer_comment", "url": "u", "who": "eve", "when": "2020"}


@pytest.fixture
def begun(tmp_path):
    """Begin a review."""
    return lambda source, **wanted: pairkit.review(
        source, tmp_path / f"{len([*tmp_path.iterdir()])}.review", **wanted
    )


def reported(review):
    """The report after all drawn pairs were judged."""
    judge_all(review)
    return review.report()


def counts(found):
    """The number of judged pairs by fact and value; a fact that all pairs share is left out."""
    return {
        fact: {value: each.judged for value, each in by.items()}
        for fact, by in found.by.items()
    }


@table(
    """
    labels, facts, expected
    [1, 0] | known | label 1, label 0, evidence closer_comment, confidence from 0.95 on, relation same, source a/b
    [0, 0, 1] | negatives | label 1, label 0, evidence hard negative, confidence below 0.5, llm a + b
    [3.6, 0.7] | [{}, {}] | label grade 4, label grade 1
    # Columns of others with these names
    [0, 1] | [{'votes': [3, 1]}, {'votes': []}] | label 1, label 0, judges not judged
    [0, 1] | [{'votes': [{'by': 'a', 'vote': 'up'}]}, {'votes': '2'}] | label 1, label 0
    [0.75, 0.2, 0.0] | [{}, {}, {}] | label grade 4, label grade 1, label grade 0
    [1, 1, 1, 1, 1] | cast | label 1, judges judges agree, judges judges differ, judges judges unsure, judges not judged
    """,
    known=[
        {"repo": "a/b", "relation": "same", "confidence": 0.98, "evidence": EVIDENCE},
        {},
    ],
    negatives=[{"negative_kind": "hard", "confidence": 0.2}, {"llms": ["b", "a"]}, {}],
    cast=[
        {"votes": [{"judge": "c", "vote": vote} for vote in votes]}
        for votes in (
            ["same"] * 4 + ["opposite"],
            ["same", "opposite"],
            ["same", "unsure", "unsure"],
            ["unsure"],
            [],
        )
    ],
)
def test_facts(begun, labels, facts, expected):
    pairs = [
        pair(f"a{n}", f"b{n}", label, **more)
        for n, (label, more) in enumerate(zip(labels, facts, strict=True))
    ]
    found = counts(reported(begun(pairs, n=len(pairs))))
    named = {f"{name} {value}" for name, values in found.items() for value in values}
    assert named == {*expected.split(", ")}


def test_default_sample(begun):
    found = reported(begun(rows(300)))
    assert (found.settings.pairs, found.sample) == (300, 30)
    assert found.settings.strata == ("label", "evidence")
    assert found.settings.relations == ("duplicate", "superseded", "related")
    # Strata of 100, 160 and 40: two each, and the other 24 by 98, 158 and 38 of 294: 8.0, 12.9, 3.1
    drawn = {"random negative": 10, "closer_comment": 15, "other_comment": 5}
    assert counts(found)["evidence"] == drawn


def test_the_seed_decides_and_the_order_does_not(begun):
    table = pl.DataFrame(rows(200))

    def ids(review):
        judge_all(review)
        return {*review.judgements()["pair_id"]}

    first = begun(table)
    assert ids(first) == ids(begun(table.reverse())) != ids(begun(table, seed=2))
    pairkit.review(table.reverse(), first.path)  # these are the same pairs


def test_number_of_strata_depends_on_the_sample_size(begun):
    def strata(**wanted):
        return reported(begun(rows(60), **wanted)).settings.strata

    assert strata(n=20) == ("label",)
    assert strata(n=30) == ("label", "evidence")
    for names in (["evidence"], "evidence"):
        assert strata(n=12, strata=names) == ("evidence",)
    assert strata(n=12, strata=[]) == ()
    with config_error("strata = colour: expected some of label, evidence"):
        begun(rows(), strata=["colour"])
    with config_error("strata = llm: no pair has it; leave it out"):
        begun(rows(), strata=["llm"])


def test_grades_for_scores(begun):
    scored = [pair(f"a{n}", f"b{n}", n / 4) for n in range(20)]
    found = reported(begun(scored)).settings
    assert (found.asked, found.top) == ("grades", 5.0)
    assert reported(begun(scored, grades=False)).settings.asked == "labels"
    assert reported(begun(rows(), grades=True)).settings.asked == "grades"


ABOUT = {"query_top": 1, "query_results": 2, "query_share": 0.25}


def sheet(results, **more):
    """Queries with results to judge; the candidate A found the first one, and B the last one."""
    return [
        pair(query, text, 0.5, **ABOUT)
        | {
            "rank of A": 1 if text == texts[0] else None,
            "rank of B": 1 if text == texts[-1] else None,
        }
        | more
        for query, texts in results.items()
        for text in texts
    ]


def test_results_of_a_query_are_judged_together(begun):
    results = {f"q{n}": [f"one{n}", f"other{n}"] for n in range(6)} | {
        "q0": ["q1", "q2"],
        "q1": ["q0", "q2"],
    }
    rows = sheet(results)
    review, seen = begun(rows), {}
    with ann_at(review) as ann:
        state = ann.state()
        assert (state["asked"], state["progress"]["all"]) == ("results", len(results))
        while (shown := state["pair"]) is not None:
            assert "rank" not in json.dumps(state)  # also after an answer
            assert not any(
                marked for text in shown["texts"] for _, marked in text["pieces"]
            )
            query, *texts = map(text_in, shown["texts"])
            seen[query] = {*texts}
            fits = {
                pair_id: "yes" if text == "q1" else "no"
                for pair_id, text in zip(shown["ids"], texts, strict=True)
            }
            state = ann.checked(
                ann.post("judge", ann.judgement(state, "no", answers=fits))
            )
            assert state["progress"]["seconds_each"] == 1
    assert seen == {query: {*texts} for query, texts in results.items()}
    assert (
        review.report().settings.question
        == "Which results answer the query, or ask the same?"
    )
    judged = pairkit.read(review.path)["test"]
    assert judged.filter(label=1).select("text1", "text2").rows() == [("q0", "q1")]
    assert judged.select(*ABOUT).unique().to_dicts() == [ABOUT]
    ranks = ["text1", "text2", "rank of A", "rank of B"]
    given_ranks = pl.DataFrame(rows).select(ranks).rows()
    assert {*judged.select(ranks).rows()} == {*given_ranks}
    applied = pairkit.apply_review(rows, store=review.path, relabel=True).pairs.rows
    assert applied.filter(decision="yes").select("text1", "text2").rows() == [
        ("q0", "q1")
    ]


def test_results_with_grades_are_judged_one_by_one(begun):
    review = begun(
        sheet({f"q{n}": [f"one{n}", f"other{n}"] for n in range(6)}), grades=True, n=12
    )
    queries = []
    with ann_at(review) as ann:
        while (shown := ann.state()["pair"]) is not None:
            query, _ = map(text_in, shown["texts"])
            queries.append(query)
            ann.say("4")
    assert len(queries) == 12
    assert len([*groupby(queries)]) == 6  # one query after the other
    assert (
        review.report().settings.question
        == "Does the second text answer the first, or ask the same?"
    )


def test_a_query_is_undone_skipped_and_sent_again_as_a_whole(begun):
    review = begun(sheet({"q": ["a", "b", "c"], "r": ["d", "e"]}))
    with ann_at(review) as ann:
        first = ann.state()
        sent = ann.judgement(first, "no")
        sent["answers"][first["pair"]["ids"][-1]] = "yes"
        for _ in range(2):
            assert ann.post("judge", sent).status_code == 200
        assert review.judgements().height == len(sent["answers"])
        late = ann.post("judge", ann.judgement(first, "no"))
        assert late.status_code == 409
        last = ann.state()["last"]
        assert last["answers"] == sent["answers"]
        state = ann.checked(ann.post("undo", {"key": last["key"]}))
        assert (state["pair"], state["last"]) == (first["pair"], None)
        assert review.judgements().is_empty()
        ann.say("skip")
        state = ann.say("unsure")
        progress = {"done": 1, "all": 2, "skipped": 1, "seconds_each": 1}
        assert state["progress"] == progress
        of_two = {first["pair"]["ids"][0]: "no", state["last"]["pair"]: "no"}
        mixed = ann.judgement(first, "no", answers=of_two)
        assert ann.post("judge", mixed).status_code == 422


def test_more_results_than_number_keys_are_shown_in_parts(begun):
    review, sizes = begun(sheet({"q": [f"text {n}" for n in range(20)]})), []
    with ann_at(review) as ann:
        while (shown := ann.state()["pair"]) is not None:
            sizes.append(len(shown["ids"]))
            ann.say("no")
    assert sizes == [9, 9, 2]
    assert pairkit.read(review.path)["test"].height == 20


def test_settings_are_fixed_after_judgements(tmp_path):
    place = tmp_path / "r.review"
    assert len(pairkit.review(rows(), place, n=9).judgements()) == 0
    found = pairkit.review(rows(), place, n=12)  # before any judgement
    assert repr(found) == f"Review({str(place)!r}: 12 pairs, 0 judgements, 0 people)"
    with ann_at(found) as ann:
        ann.say("yes")
    pairkit.review(rows(), place)
    pairkit.review(rows(), place, n=12, seed=42)
    for wrong in ({"n": 9}, {"seed": 7}, {"grades": True}, {"strata": ["split"]}):
        with config_error("was begun with"):
            pairkit.review(rows(), place, **wrong)
    with data_error("a review of other pairs"):
        pairkit.review(rows(59), place)
    with config_error("store = None"):
        pairkit.review(rows())


def test_second_server_uses_another_port(begun):
    review = begun(rows())
    with review.serve(["ann"]) as one, review.serve() as other:
        assert one.url != other.url
        # Known reviewers keep their links.
        assert [*one.links] == [*other.links] == ["ann"]


def test_each_pair_has_its_number_of_people(begun):
    review = begun(rows(40), n=40, each=2)
    people = ["ann", "bob", "cid"]
    with review.serve(people, port=0) as server:
        assert [*server.links] == people
    for person in people:
        judge_all(review, person=person)
    kept = review.judgements()
    assert Counter(kept["pair_id"]) == dict.fromkeys(kept["pair_id"], 2)
    assert kept["pair_id"].n_unique() == 40


def test_everyone_judges_each_distinct_pair_in_an_own_order(begun):
    turned = [pair(row["text2"], row["text1"], row["label"]) for row in rows(40)]
    review = begun([*rows(40), *turned], n=1000)
    orders = []
    for person in ("ann", "bob"):
        judge_all(review, person=person)
        own = review.judgements().filter(person=person)
        orders.append(own["pair_id"].to_list())
    first, second = orders
    assert len(first) == 40
    assert {*first} == {*second}
    assert first != second


NUMBER = 6
PAIRS = [pair(f"one {n}", f"other {n}") for n in range(NUMBER)]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "resend", "late", "undo", "skip", "restore", "restart", "nonsense"]
        ),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=8)
@given(ACTIONS)
def test_any_sequence_of_actions(tmp_path_factory, actions):
    review = pairkit.review(
        PAIRS, tmp_path_factory.mktemp("session") / "d.review", n=NUMBER
    )
    server = review.serve(["ann"], port=0)
    ann = Reviewer(server.links["ann"])
    sent = list[dict[str, Any]]()
    kept = dict[str, str]()
    for action, yes in actions:
        state = ann.state()
        if action in ("say", "skip") and state["pair"]:
            answer = "skip" if action == "skip" else "yes" if yes else "no"
            sent.append(ann.judgement(state, answer))
            assert ann.post("judge", sent[-1]).status_code == 200
            kept[state["pair"]["id"]] = answer
        elif action == "resend" and sent:  # saved or undone before: no effect
            assert ann.post("judge", sent[-1]).status_code == 200
        elif action == "late" and kept:
            late = ann.judgement({"pair": {"id": next(iter(kept))}}, "unsure")
            assert ann.post("judge", late).status_code == 409
        elif action == "undo" and state["last"]:
            ann.checked(ann.post("undo", {"key": state["last"]["key"]}))
            del kept[state["last"]["pair"]]
        elif action == "restore":
            ann.checked(ann.post("skipped", {}))
            kept = {each: answer for each, answer in kept.items() if answer != "skip"}
        elif action == "restart":
            server.close()
            server = review.serve(["ann"], port=0)
            ann = Reviewer(server.links["ann"])
        elif action == "nonsense":
            odd = ann.judgement({"pair": {"id": "p99"}}, "yes")
            assert ann.post("judge", odd).status_code == 422
        assert dict(review.judgements().select("pair_id", "answer").iter_rows()) == kept
        progress = ann.state()["progress"]
        assert progress["all"] == NUMBER
        assert progress["done"] + progress["skipped"] == len(kept)
    server.close()


def test_long_texts_are_cut(tmp_path):
    pairs = [pair("x " * 150_000, "y")]
    with ann_at(pairkit.review(pairs, tmp_path / "d.review")) as ann:
        shown = ann.state()["pair"]["texts"]
    assert [side["left_out"] for side in shown] == [100_000, 0]
