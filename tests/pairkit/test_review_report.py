from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pairkit
from pairkit import ConfigError, DataError
from pairkit.dataset.judgements import JudgedPair, ReviewJudgement, ReviewSettings, ReviewStore
from pairkit.reviews.agreement import cohen_kappa, wilson
from pairkit.reviews.review_report import is_right, make_review_report

SETTINGS = ReviewSettings(
    dataset="d", digest="x", pairs=100, label_kind="binary", top=1, asked="labels", question="Same?"
)
# Strata of 80, 15 and 5 pairs; 4, 2 and 0 of them drawn.
STRATA = {"label 1, evidence closer": 80, "label 1, evidence other": 15, "label 0": 5}


def pair(number: int, label: float, evidence: str) -> JudgedPair:
    stratum = f"label {label:g}, evidence {evidence}"
    facts = {"label": f"{label:g}", "evidence": evidence}
    return JudgedPair(f"p{number}", f"one {number}", f"other {number}", label, stratum, facts, {})


PAIRS = [
    *(pair(number, 1.0, "closer") for number in range(4)),
    *(pair(number, 1.0, "other") for number in (4, 5)),
]


def judgement(number: int, person: str, answer: str, **more: Any) -> ReviewJudgement:
    key = f"{person}-{number}"
    return ReviewJudgement(key, f"p{number}", person, answer, "", "", 30.0, "2020")._replace(**more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore(tmp_path / "d.review", create=True) as found:
        found.begin(SETTINGS, STRATA, PAIRS)
        found.invite(["ann", "bob"])
        yield found


def judged(store: ReviewStore, ann: str, bob: str = "") -> ReviewStore:
    words = {"y": "yes", "n": "no", "u": "unsure", "s": "skip"}
    for person, answers in (("ann", ann), ("bob", bob)):
        for number, letter in enumerate(answers):
            store.add(judgement(number, person, words[letter]))
    return store


def test_weighted_shares(store: ReviewStore) -> None:
    found = make_review_report(judged(store, "yyynyn"))
    # 3 of 4 correct with weight 20; 1 of 2 with weight 7.5
    assert found.total.right.value == pytest.approx((3 * 20 + 7.5) / 95)
    effective = 95**2 / (4 * 20**2 + 2 * 7.5**2)
    assert found.total.right.interval == pytest.approx(wilson((67.5 / 95) * effective, effective))
    by = found.by["evidence"]
    assert by["closer"].right == (0.75, pytest.approx(wilson(3, 4)), 4)
    assert by["other"].right == (0.5, pytest.approx(wilson(1, 2)), 2)
    assert found.by["label"]["1"].right == found.total.right
    assert found.unseen == {"label 0": 5}
    assert "not judged: 1 strata of 5 pairs, such as label 0" in found.remarks()
    assert found.words() == "inspected by hand: 6.0 %, precision 0.71 [0.31, 0.93]"


def test_unsure_and_disputed_pairs(store: ReviewStore) -> None:
    found = make_review_report(judged(store, "yyuyys", "ynuyy"))
    assert (found.total.judged, found.total.unsure, found.total.disputed) == (5, 1, 1)
    assert found.total.right.value == 1
    assert found.disputed == 1
    assert found.people["ann"].skipped == 1
    assert found.people["ann"].minutes == 3
    # both judged p0, p1, p3 and p4: they agree on three, bob says no once
    assert found.kappa["ann", "bob"].value == cohen_kappa([1, 1, 1, 1], [1, 0, 1, 1]).value == 0


def test_kappa_interval_and_relations(store: ReviewStore) -> None:
    judged(store, "ynyyy", "ynyynn")
    store.add(judgement(5, "ann", "yes", relation="related"))
    found = make_review_report(store)
    assert found.by["relation that people gave"]["related"].judged == 1
    # 4 of 6 agree; by chance 5/6 * 3/6 + 1/6 * 3/6 = 1/2
    low, high = found.kappa["ann", "bob"].interval or (0, 0)
    assert f"kappa 0.33 [{low:.2f}, {high:.2f}]" in found.words()


@pytest.mark.parametrize(
    ("kind", "asked", "top", "label", "value", "right"),
    [
        ("binary", "labels", 1, 1, 1, True),
        ("binary", "labels", 1, 0, 1, False),
        ("binary", "grades", 1, 1, 2.5, True),
        ("binary", "grades", 1, 0, 2.4, True),
        ("graded", "grades", 5, 3.2, 4.2, True),
        ("graded", "grades", 5, 3.2, 4.3, False),
        ("graded", "grades", 1, 0.5, 3, True),
        ("graded", "labels", 1, 0.5, 1, True),
        ("graded", "labels", 5, 2.4, 1, False),
    ],
)
def test_is_right(kind: Any, asked: Any, top: float, label: float, value: float, right: bool) -> None:
    settings = SETTINGS.model_copy(update={"label_kind": kind, "asked": asked, "top": top})
    assert is_right(label, value, settings) is right


def test_card_section(store: ReviewStore, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    pairkit.write([{"text1": "a", "text2": "b", "label": 1}], folder)
    before = (folder / "README.md").read_text()
    make_review_report(judged(store, "yyyn")).save_card(folder)
    once = (folder / "README.md").read_text()
    assert once.count("## Inspected by hand\n") == 1
    assert once.index("## Inspected by hand") < once.index("## Limitations")
    assert "Inspected by hand: 4.0 %, precision 0.75 [0.30, 0.95]." in once
    make_review_report(judged(store, "", "yyyy")).save_card(folder)
    twice = (folder / "README.md").read_text()
    assert twice.count("## Inspected by hand\n") == 1
    assert "4 of 100 pairs were judged by 2 people" in twice
    a, b = twice.index("## Inspected by hand"), twice.index("## Limitations")
    assert twice[:a] + twice[b:] == before
    with pytest.raises(ConfigError, match="no readable dataset card"):
        make_review_report(store).save_card(tmp_path / "nothing")


def test_to_dict_is_json(store: ReviewStore) -> None:
    output = make_review_report(judged(store, "yyyn", "yyyy")).to_dict()
    assert json.loads(json.dumps(output, allow_nan=False)) == output
    assert output["kappa"]["ann and bob"]["n"] == 4
    assert "common" not in output["settings"]


def test_no_judgements(store: ReviewStore) -> None:
    with pytest.raises(DataError, match="no pair is judged yet"):
        make_review_report(store)


def test_three_reviewers(store: ReviewStore) -> None:
    judged(store, "yynnyy", "yynyyy")
    store.invite(["dora"])
    for number, answer in enumerate(["yes", "no", "no", "no"]):
        store.add(judgement(number, "dora", answer))
    found = make_review_report(store)
    assert [*found.kappa] == [("ann", "bob"), ("ann", "dora"), ("bob", "dora")]
    assert f"alpha {found.alpha.value:.2f} [" in found.words()
    assert found.alpha.n == 6
    assert "ann and dora" in repr(found)
    assert "Krippendorff" in found._repr_html_()


def test_report_on_grades(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"asked": "grades", "label_kind": "graded", "top": 5.0})
    with ReviewStore(tmp_path / "d.review", create=True) as store:
        store.begin(settings, STRATA, PAIRS)
        store.invite(["ann", "bob"])
        for number, (one, other) in enumerate(["12", "13", "51", "22"]):
            store.add(judgement(number, "ann", one))
            store.add(judgement(number, "bob", other))
        found = make_review_report(store)
    # scores of 1 against mean grades of 1.5, 2, 3 and 2
    assert found.words().startswith("inspected by hand: 4.0 %, right 0.75 [")
    assert found.disputed == 2
