from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pairkit
from pairkit import DataError
from pairkit.dataset.judgements import (
    AnsweredError,
    JudgedPair,
    ReviewJudgement,
    ReviewSettings,
    ReviewStore,
    decide,
)

SETTINGS = ReviewSettings(
    dataset="d", digest="x", pairs=3, label_kind="binary", top=1, asked="labels", question="Same?"
)
PAIRS = [
    JudgedPair(str(place), f"one {place}", f"other {place}", 1.0, "all", {"label": "1"}, {})
    for place in range(3)
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore(tmp_path / "d.review", create=True) as found:
        found.begin(SETTINGS, {"all": 3}, PAIRS)
        found.invite(["ann", "bob", "cid"])
        yield found


def judged(
    key: str, pair: str = "0", person: str = "ann", answer: str = "yes", **more: Any
) -> ReviewJudgement:
    plain = ReviewJudgement(key, pair, person, answer, "", "", 1.0, "2020-01-01T00:00:00+00:00")
    return plain._replace(**more)


def test_repeated_judgements_are_saved_once(store: ReviewStore) -> None:
    for _ in range(2):
        store.add(judged("k1"))
    assert len(store.judgements()) == 1
    with pytest.raises(AnsweredError, match="another tab"):
        store.add(judged("k2", answer="no"))
    with pytest.raises(AnsweredError, match="another judgement"):
        store.add(judged("k1", pair="1"))
    store.add(judged("k3", person="bob", answer="no"))
    assert [one.answer for one in store.judgements()] == ["yes", "no"]


def test_other_databases_are_refused(store: ReviewStore) -> None:
    store.close()
    plain = sqlite3.connect(store.path)
    plain.executescript("PRAGMA application_id = 7")
    plain.close()
    with pytest.raises(DataError, match="not a review"):
        pairkit.read(store.path)


def test_majority() -> None:
    judgements = [
        judged("1"), judged("2", person="bob"), judged("3", person="dan", answer="no"),
        judged("4", "1"), judged("5", "1", "bob", "no"),
        judged("6", "2"), judged("7", "2", "bob", "no", relation="related"), judged("8", "2", "cid", "no"),
        judged("9", "3", answer="unsure"), judged("10", "4", answer="skip"),
    ]  # fmt: skip
    found = decide(judgements)
    assert {pair: (one.state, one.value) for pair, one in found.items()} == {
        "0": ("decided", 1.0),
        "1": ("disputed", None),
        "2": ("decided", 0.0),
        "3": ("unsure", None),
    }
    assert found["0"].people == ("ann", "bob", "dan")
    assert found["2"].people == ("ann", "bob", "cid")
    assert found["2"].relation == "related"
    assert {pair for pair, one in found.items() if one.differs} == {"0", "1", "2"}


def test_grades() -> None:
    judgements = [judged("1", answer="3"), judged("2", person="bob", answer="4")]
    assert (decide(judgements)["0"].value, decide(judgements)["0"].differs) == (3.5, False)
    assert decide([*judgements, judged("3", person="dan", answer="1")])["0"].differs


def test_read_a_review(store: ReviewStore) -> None:
    with pytest.raises(DataError, match="no pair is decided yet"):
        pairkit.read(store.path)
    store.add(judged("1"))
    store.add(judged("2", "1", answer="no"))
    store.add(judged("3", "2", answer="unsure"))
    pairs = pairkit.read(store.path)
    assert pairs["test"].rows() == [("one 0", "other 0", 1, ["ann"]), ("one 1", "other 1", 0, ["ann"])]
    assert pairs.label_kind == "binary"


def test_the_log_of_an_earlier_version_is_taken_into_the_file(store: ReviewStore, tmp_path: Path) -> None:
    store.close()
    with closing(sqlite3.connect(store.path)) as earlier:
        earlier.execute("PRAGMA journal_mode = WAL")
        earlier.execute(f"INSERT INTO judgements VALUES (1, {', '.join('?' * 8)}, 0)", judged("k"))
        earlier.commit()
        for path in tmp_path.glob("d.review*"):
            shutil.copy(path, tmp_path / path.name.replace("d.", "copy."))
    assert (tmp_path / "copy.review-wal").stat().st_size
    for _ in range(2):
        with ReviewStore(tmp_path / "copy.review") as copy:
            assert [one.key for one in copy.judgements()] == ["k"]
        (tmp_path / "copy.review-wal").unlink(missing_ok=True)


def test_a_review_without_settings_is_an_error(tmp_path: Path) -> None:
    with (
        ReviewStore(tmp_path / "d.review", create=True) as empty,
        pytest.raises(DataError, match="a review without settings"),
    ):
        _ = empty.settings
