from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.base.printable import printable
from pairkit.dataset.judgements import AnsweredError, JudgedPair, ReviewSettings, ReviewStore
from pairkit.reviews.review_server import NotAskedError, ReviewerSession, SentJudgement, pairs_of, shown_pair

NUMBER = 6
SETTINGS = ReviewSettings(
    dataset="d", digest="x", pairs=NUMBER, label_kind="binary", top=1, asked="labels", question="Same?"
)
PAIRS = [JudgedPair(f"p{n}", f"one {n}", f"other {n}", 1.0, "all", {}, {}) for n in range(NUMBER)]
IDS = {f"pair {number}": f"pair {number}" for number in range(200)}
NAMES = st.lists(st.sampled_from(["ann", "bob", "cid", "dora"]), min_size=1, max_size=4, unique=True)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["say", "resend", "late tab", "undo", "skip", "take up", "restart", "nonsense"]),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(ACTIONS)
def test_any_sequence_of_actions(actions: list[tuple[str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "d.review"
        store = ReviewStore(path, create=True)
        store.begin(SETTINGS, {"all": NUMBER}, PAIRS)
        (ann,) = store.invite(["ann"])
        session, sent = ReviewerSession(store, ann), list[SentJudgement]()
        stands: dict[str, str] = {}
        for number, (action, yes) in enumerate(actions):
            pair = session.state()["pair"]
            if action in ("say", "skip") and pair:
                answer = "skip" if action == "skip" else "yes" if yes else "no"
                sent.append(SentJudgement(key=f"key-{number:05}", pair=pair["id"], answer=answer))
                session.judge(sent[-1])
                stands[pair["id"]] = answer
            elif action == "resend" and sent:
                session.judge(sent[-1])  # saved or undone before: no effect
            elif action == "late tab" and stands:
                old_pair = next(iter(stands))
                try:
                    session.judge(SentJudgement(key=f"late-{number:05}", pair=old_pair, answer="unsure"))
                    raise AssertionError("a pair was judged twice")
                except AnsweredError:
                    pass
            elif action == "undo" and (last := session.state()["last"]):
                session.undo(last["key"])
                gone = next(judgement for judgement in sent if judgement.key == last["key"])
                del stands[gone.pair]
            elif action == "take up":
                session.take_up_skipped()
                stands = {pair_id: answer for pair_id, answer in stands.items() if answer != "skip"}
            elif action == "restart":
                store.close()
                store = ReviewStore(path)
                session = ReviewerSession(store, ann)
            elif action == "nonsense":
                try:
                    session.judge(SentJudgement(key=f"odd-{number:05}", pair="p99", answer="yes"))
                    raise AssertionError("an answer to no question was kept")
                except NotAskedError:
                    pass
            found = {judgement.pair_id: judgement.answer for judgement in store.judgements()}
            assert found == stands
            assert len(store.judgements()) == len(stands)
            progress = session.state()["progress"]
            assert progress["all"] == NUMBER
            assert progress["done"] + progress["skipped"] == len(stands)
        store.close()


@settings(max_examples=20)
@given(NAMES, st.integers(1, 5), st.integers(0, 3))
def test_assignment_of_people(people: list[str], each: int, seed: int) -> None:
    seen = Counter(
        pair_id for name in people for pair_id in pairs_of(name, IDS, people, seed=seed, each=each)
    )
    assert set(seen.values()) == {min(each, len(people))}
    assert seen.keys() == {*IDS}


def test_order_of_pairs() -> None:
    people = ["ann", "bob"]
    orders = [pairs_of(name, IDS, people, seed=1) for name in people]
    assert {*orders[0]} == {*orders[1]}
    assert orders[0] != orders[1]
    assert orders[0] == pairs_of("ann", dict(reversed(IDS.items())), people[::-1], seed=1)
    assert orders[0] != pairs_of("ann", IDS, people, seed=2)


def test_pairs_of_a_group_are_adjacent_and_have_the_same_people() -> None:
    together = {pair_id: f"query {number % 40}" for number, pair_id in enumerate(IDS)}
    people = ["ann", "bob", "cid"]
    for name in people:
        order = [together[pair_id] for pair_id in pairs_of(name, together, people, seed=1, each=1)]
        assert order == [query for query in dict.fromkeys(order) for _ in range(5)]


@given(st.text(), st.text())
def test_whole_texts_are_shown(one: str, other: str) -> None:
    shown = shown_pair(one, other, frozenset())["texts"]
    for text, side in zip((one, other), shown, strict=True):
        assert "".join(piece for piece, _ in side["pieces"]) == printable(text.replace("\r\n", "\n"))
        assert side["left_out"] == 0


def test_marked_words() -> None:
    assert shown_pair("x " * 150_000, "y", frozenset())["texts"][0]["left_out"] == 100_000

    def marked(one: str, other: str) -> tuple[str, list[list[str]]]:
        found = shown_pair(one, other, frozenset({"the"}))
        return found["marks"], [
            [t for t, is_marked in side["pieces"] if is_marked] for side in found["texts"]
        ]

    alike = marked("the pump usually works", "the pump seldom works")
    assert alike == ("own", [["usually"], ["seldom"]])
    assert marked("the crash at once", "the error after a Crash last year") == (
        "shared",
        [["crash"], ["Crash"]],
    )
    rest = "word " * 100
    assert marked(f"{rest}usually", f"{rest}seldom")[0] == "shared"
