from __future__ import annotations

from gis_builder.detection import decide, explain
from gis_builder.store.records import Verdict, VerdictOutcome

from .detect_threads import event, kind_of, ref, said, thread


def test_evidence_in_order_of_time_and_the_reason() -> None:
    talk = thread(
        said("bob", "Duplicate of #2?", 30),
        said("ann", "Not a dup, see the log.", 20),
        said("max", "#3 is a dup of this", 10),
        said("mia", "Closing as a duplicate of #1."),
        event("closed", 0, state_reason="completed"),
    )
    text = explain(talk, decide(talk, kind_of), kind_of)
    order = [
        "bob (other) asks",
        "disputed",
        "ann (author) denies",
        "max (maintainer) speaks of other",
        "mia (closer)",
    ]
    places = [
        text.index(part) for part in [*order, "event closed as completed", "verdict: duplicate of o/n#1"]
    ]
    assert places == sorted(places)
    assert "counts 0.98" in text
    assert "because: the closer calls it a duplicate, and it was closed for that [closer_duplicate]" in text


def test_every_reason_has_words() -> None:
    threads = [
        thread(),
        thread(state="open", closed_at=None),
        thread(said("mia", "dup of #100")),
        thread(said("mia", "dup of #555")),
        thread(said("mia", "dup of #777")),
        thread(said("mia", "dup of q/r#1")),
        thread(said("mia", "This is a dup.")),
        thread(said("mia", "#1"), labels=("duplicate",)),
        thread(said("mia", "Closing in favour of #1")),
        thread(event("marked_as_duplicate", 1, 1), event("closed", 0)),
    ]
    for one in threads:
        verdict = decide(one, kind_of)
        assert f"[{verdict.reason}]" in explain(one, verdict, kind_of)


def test_a_reason_given_by_others_is_explained_too() -> None:
    verdict = Verdict(ref(100), VerdictOutcome.UNCERTAIN, (ref(1),), 0.4, "below_min_confidence")
    assert "less confidence" in explain(thread(), verdict, kind_of)
