from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from tests.pairkit.review_material import Reviewer, text_in

NUMBER = 6
PAIRS = [{"text1": f"one {n}", "text2": f"other {n}", "label": 1} for n in range(NUMBER)]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["say", "resend", "late tab", "undo", "skip", "take up", "restart", "nonsense"]),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=8)
@given(ACTIONS)
def test_any_sequence_of_actions(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, bool]]
) -> None:
    review = pairkit.review(PAIRS, tmp_path_factory.mktemp("session") / "d.review", n=NUMBER)
    server = review.serve(["ann"], port=0)
    ann, sent, kept = Reviewer(server.links["ann"]), list[dict[str, Any]](), dict[str, str]()
    for action, yes in actions:
        state = ann.state()
        if action in ("say", "skip") and state["pair"]:
            answer = "skip" if action == "skip" else "yes" if yes else "no"
            sent.append(ann.judgement(state, answer))
            assert ann.post("judge", sent[-1]).status_code == 200
            kept[state["pair"]["id"]] = answer
        elif action == "resend" and sent:  # saved or undone before: no effect
            assert ann.post("judge", sent[-1]).status_code == 200
        elif action == "late tab" and kept:
            late = ann.judgement({"pair": {"id": next(iter(kept))}}, "unsure")
            assert ann.post("judge", late).status_code == 409
        elif action == "undo" and state["last"]:
            ann.checked(ann.post("undo", {"key": state["last"]["key"]}))
            del kept[state["last"]["pair"]]
        elif action == "take up":
            ann.checked(ann.post("skipped", {}))
            kept = {pair: answer for pair, answer in kept.items() if answer != "skip"}
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


@pytest.mark.parametrize(
    ("texts", "marks", "marked"),
    [
        (("pump usually works", "pump seldom works"), "own", [["usually"], ["seldom"]]),
        (("the crash at once", "the error after a Crash last year"), "shared", [["crash"], ["Crash"]]),
        ((f"{'word ' * 100}one", f"{'word ' * 100}two"), "shared", [["word"] * 100, ["word"] * 100]),
    ],
)
def test_marked_words(tmp_path: Path, texts: tuple[str, str], marks: str, marked: list[list[str]]) -> None:
    common = [(f"the x{n}", f"the y{n}") for n in range(12)]
    pairs = [{"text1": one, "text2": two, "label": 1} for one, two in [texts, *common]]
    with pairkit.review(pairs, tmp_path / "d.review", n=13).serve(["ann"], port=0) as server:
        ann = Reviewer(server.links["ann"])
        while tuple(map(text_in, (pair := ann.state()["pair"])["texts"])) != texts:
            ann.say("skip")
    assert pair["marks"] == marks
    assert [[piece for piece, is_marked in side["pieces"] if is_marked] for side in pair["texts"]] == marked


def test_long_texts_are_cut(tmp_path: Path) -> None:
    pairs = [{"text1": "x " * 150_000, "text2": "y", "label": 1}]
    with pairkit.review(pairs, tmp_path / "d.review").serve(["ann"], port=0) as server:
        shown = Reviewer(server.links["ann"]).state()["pair"]["texts"]
    assert [side["left_out"] for side in shown] == [100_000, 0]
