from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pairkit
from pairkit import ConfigError, DataError
from pairkit.reviews.review_sample import (
    ReviewOptions,
    dataset_digest,
    draw_sample,
    facts_of,
    origin_of,
    pair_id,
)
from tests.pairkit.review_material import Reviewer, rows, text_in


def drawn(source: Any, **wanted: Any) -> Any:
    return draw_sample(pairkit.read(source), ReviewOptions(**wanted))


def test_facts() -> None:
    gis = {"label": 1, "split": "test", "repo": "a/b", "relation": "same", "confidence": 0.98}
    gis["evidence"] = {"kind": "closer_comment"}
    assert facts_of(gis, top=1) == {
        "label": "1",
        "evidence": "closer_comment",
        "confidence": "from 0.95 on",
        "relation": "same",
        "source": "a/b",
        "split": "test",
    }
    llms = {"label": 0.0, "split": "train", "llms": ["b", "a"], "votes": [{"judge": "c", "vote": "same"}]}
    assert facts_of(llms, top=1) == {"label": "0", "llm": "a + b", "judges": "judges agree", "split": "train"}
    negative = {"label": 0, "split": "train", "negative_kind": "hard", "confidence": None, "evidence": None}
    assert facts_of(negative, top=1) == {"label": "0", "evidence": "hard negative", "split": "train"}
    assert facts_of({"label": 3.6, "split": "train"}, top=5)["label"] == "grade 4"
    assert facts_of({"label": 0.7, "split": "train", "confidence": 0.2}, top=1) == {
        "label": "grade 4",
        "confidence": "below 0.5",
        "split": "train",
    }


def test_default_sample() -> None:
    found = drawn(rows(300))
    assert found.settings.pairs == 300
    assert len(found.pairs) == 30
    assert found.settings.strata == ("label", "evidence")
    assert found.strata == {
        "label 0, evidence random negative": 100,
        "label 1, evidence closer_comment": 160,
        "label 1, evidence other_comment": 40,
    }
    # two each, and the other 24 by 98, 158 and 38 of 294: 8.0, 12.9, 3.1
    assert Counter(pair.stratum for pair in found.pairs) == {
        "label 0, evidence random negative": 10,
        "label 1, evidence closer_comment": 15,
        "label 1, evidence other_comment": 5,
    }
    assert found.settings.relations == ("duplicate", "superseded", "related")


def test_the_seed_decides_and_the_order_does_not() -> None:
    table = pl.DataFrame(rows(200))
    ids = {pair.pair_id for pair in drawn(table).pairs}
    assert {pair.pair_id for pair in drawn(table.reverse()).pairs} == ids
    assert {pair.pair_id for pair in drawn(table, seed=2).pairs} != ids
    assert dataset_digest(pairkit.read(table)) == dataset_digest(pairkit.read(table.reverse()))


def test_number_of_strata_depends_on_the_sample_size() -> None:
    assert drawn(rows(60), n=20).settings.strata == ("label",)
    assert drawn(rows(60), n=30).settings.strata == ("label", "evidence")
    assert drawn(rows(60), n=12, strata=["evidence"]).settings.strata == ("evidence",)
    assert {pair.stratum for pair in drawn(rows(60), n=60, strata=[]).pairs} == {"all"}
    with pytest.raises(ConfigError, match="strata = colour: expected some of label, evidence"):
        drawn(rows(), strata=["colour"])


def test_repeated_pairs_are_one() -> None:
    twice = [
        {"text1": "a", "text2": "b", "label": 1},
        {"text1": "b", "text2": "a", "label": 1},
        {"text1": "a", "text2": "c", "label": 0},
    ]
    found = drawn(twice, n=1000)
    assert found.settings.pairs == len(found.pairs) == 2
    assert pair_id("a", "b") == pair_id("b", "a") != pair_id("ab", "")


def test_grades_for_scores() -> None:
    scored = [{"text1": f"a{n}", "text2": f"b{n}", "label": n / 4} for n in range(20)]
    found = drawn(scored, n=1000)
    assert (found.settings.asked, found.settings.top) == ("grades", 5.0)
    assert drawn(scored, grades=False).settings.asked == "labels"
    assert drawn(rows(), grades=True).settings.asked == "grades"


def test_search_results(tmp_path: Path) -> None:
    about = {"query_top": 1, "query_results": 2, "query_share": 0.25}
    texts = [(f"q{n}", f"{side}{n}") for n in range(6) for side in ("one", "other")]
    both_ways = [("q0", "q1"), ("q1", "q0")]
    results = [{"text1": one, "text2": two, "label": 0.5} | about for one, two in texts + both_ways]
    found = drawn(results)
    assert found.settings.question == "Does the second text answer the first, or ask the same?"
    assert (found.settings.asked, len(found.pairs)) == ("labels", len(results))
    assert drawn(results, grades=True, question="Relevant?", n=3).settings.question == "Relevant?"
    review = pairkit.review(results, tmp_path / "r.review")
    with review.serve(["ann"], port=0) as server:
        ann, shown = Reviewer(server.links["ann"]), []
        while (pair := ann.state()["pair"]) is not None:
            shown.append([text_in(text) for text in pair["texts"]])
            ann.say("yes" if shown[-1] == ["q0", "q1"] else "no")
    queries = [query for query, _ in shown]
    assert len([*groupby(queries)]) == len({*queries})  # one query after the other
    judged = pairkit.read(review.path)["test"]
    assert judged.filter(label=1).select("text1", "text2").rows() == [("q0", "q1")]
    assert judged.select(*about).unique().to_dicts() == [about]
    applied = pairkit.apply_review(results, store=review.path, relabel=True).pairs.rows
    assert applied.filter(decision="yes").select("text1", "text2").rows() == [("q0", "q1")]


def test_settings_are_fixed_after_judgements(tmp_path: Path) -> None:
    place = tmp_path / "r.review"
    assert len(pairkit.review(rows(), place, n=9).judgements()) == 0
    found = pairkit.review(rows(), place, n=12)  # before any judgement
    assert repr(found) == f"Review({str(place)!r}: 12 pairs, 0 judgements, 0 people)"
    with found.serve(["ann"], port=0) as server:
        Reviewer(server.links["ann"]).say("yes")
    pairkit.review(rows(), place)
    pairkit.review(rows(), place, n=12, seed=42)
    for wrong in ({"n": 9}, {"seed": 7}, {"grades": True}, {"strata": ["split"]}, {"each": 2}):
        with pytest.raises(ConfigError, match="was begun with"):
            pairkit.review(rows(), place, **wrong)
    with pytest.raises(DataError, match="a review of other pairs"):
        pairkit.review(rows(59), place)


def test_pairs_in_memory_need_a_file_for_the_review() -> None:
    with pytest.raises(ConfigError, match="store = None"):
        pairkit.review(rows())


def test_origin() -> None:
    row = {
        "repo": "a/b",
        "number1": "7",
        "evidence": {"kind": "label", "who": None},
        "text1": "x",
        "label": 1,
    }
    assert origin_of(row) == {"evidence kind": "label", "repo": "a/b", "number1": "7"}
    votes = [{"judge": "c", "vote": "same"}, {"judge": "d", "vote": "unsure"}]
    assert origin_of({"llms": ["b", "a"], "votes": votes}) == {"llms": "a + b", "votes": "c: same, d: unsure"}


def test_second_server_uses_another_port(tmp_path: Path) -> None:
    review = pairkit.review(rows(), tmp_path / "r.review")
    with review.serve(["ann"]) as one, review.serve() as other:
        assert one.url != other.url
        assert [*one.links] == [*other.links] == ["ann"]  # known reviewers keep their links
