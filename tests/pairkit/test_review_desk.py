"""Whatever a person does, twice or not, and whenever the server ends: what stands is what was said last."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit._review.desk import Desk, NotAskedError, Said
from pairkit.judgements import REVIEWER, AnsweredError, JudgedPair, ReviewSettings, Store

NUMBER = 6
SETTINGS = ReviewSettings(
    dataset="d",
    digest="x",
    pairs=NUMBER,
    label_kind="binary",
    top=1,
    asked="labels",
    question="Same?",
    again=0.3,
)
PAIRS = [JudgedPair(f"p{n}", f"one {n}", f"other {n}", 1.0, "all", {}, {}) for n in range(NUMBER)]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["say", "resend", "late tab", "undo", "skip", "take up", "restart", "nonsense"]),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(ACTIONS)
def test_any_course_of_events_keeps_what_was_said_once(actions: list[tuple[str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "d.review"
        store = Store(path, create=True)
        store.begin(SETTINGS, {"all": NUMBER}, PAIRS)
        (ann,) = store.invite(["ann"], REVIEWER)
        desk, sent = Desk(store, ann), list[Said]()
        stands: dict[tuple[str, int], str] = {}
        for number, (action, yes) in enumerate(actions):
            pair = desk.state()["pair"]
            if action in ("say", "skip") and pair:
                answer = "skip" if action == "skip" else "yes" if yes else "no"
                sent.append(Said(key=f"key-{number:05}", pair=pair["id"], turn=pair["turn"], answer=answer))
                desk.judge(sent[-1])
                stands[pair["id"], pair["turn"]] = answer
            elif action == "resend" and sent:
                desk.judge(sent[-1])  # stands already, or was taken back: changes nothing
            elif action == "late tab" and stands:
                old_pair, old_turn = next(iter(stands))
                try:
                    desk.judge(Said(key=f"late-{number:05}", pair=old_pair, turn=old_turn, answer="unsure"))
                    raise AssertionError("a pair was judged twice")
                except AnsweredError:
                    pass
            elif action == "undo" and (last := desk.state()["last"]):
                desk.undo(last["key"])
                gone = next(said for said in sent if said.key == last["key"])
                del stands[gone.pair, gone.turn]
            elif action == "take up":
                desk.take_up_skipped()
                stands = {turn: answer for turn, answer in stands.items() if answer != "skip"}
            elif action == "restart":
                store.close()
                store = Store(path)
                desk = Desk(store, ann)
            elif action == "nonsense":
                try:
                    desk.judge(Said(key=f"odd-{number:05}", pair="p99", turn=0, answer="yes"))
                    raise AssertionError("an answer to no question was kept")
                except NotAskedError:
                    pass
            found = {(said.pair_id, said.turn): said.answer for said in store.judgements()}
            assert found == stands
            assert len(store.judgements()) == len(stands)
            progress = desk.state()["progress"]
            assert progress["all"] == NUMBER + 1
            assert progress["done"] + progress["skipped"] == len(stands)
        store.close()
