import json
import sqlite3
from contextlib import closing
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairkit
from pairkit import LeakError
from pairkit.base.system.seeded import in_proportion, in_turns, keyed_hash
from pairkit.reviews.agreement import Figure, cohen_kappa, krippendorff_alpha, wilson
from tests.pairkit.review_material import judge_all, rows
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    pair,
    parametrize,
    raises,
    table,
    values,
)

WORDS = {"y": "yes", "n": "no", "u": "unsure", "s": "skip"}


def reviewed(place, labels=(1,) * 6, **answers):
    """A review of all pairs with a letter or grade for each pair, by person."""
    pairs = [pair(f"{n} one", f"other {n}", label) for n, label in enumerate(labels)]
    review = pairkit.review(pairs, place / "d.review", n=len(pairs))

    for person, letters in answers.items():

        def answer(texts, letters=letters):
            letter = letters[int(texts.split()[0])]
            return WORDS.get(letter, letter)

        judge_all(review, answer, person)
    return review


def test_weighted_shares(tmp_path):
    kinds = ["closer"] * 80 + ["other"] * 15 + ["none"] * 5
    rows = [
        pair(f"{kind} {n}", f"text {n}", int(kind != "none"))
        | {"evidence": {"kind": kind, "url": "u", "who": "eve", "when": "2020"}}
        for n, kind in enumerate(kinds)
    ]
    # Two of each stratum, and the other four by 78, 13 and 3 of 94: 3.3, 0.6, 0.1
    review = pairkit.review(rows, tmp_path / "d.review", n=10, strata=["evidence"])
    left = {"closer": iter("yyyny"), "other": iter("yyn"), "none": iter("ss")}
    judge_all(review, lambda texts: WORDS[next(left[texts.split()[0]])])
    found = review.report()
    # 4 of 5 correct with weight 16; 2 of 3 with weight 5
    assert found.total.right.value == approx((4 * 16 + 2 * 5) / 95)
    size = 95**2 / (5 * 16**2 + 3 * 5**2)
    assert found.total.right.interval == approx(wilson(74 / 95 * size, size))
    by = found.by["evidence"]
    assert astuple(by["closer"].right) == (0.8, approx(wilson(4, 5)), 5)
    assert astuple(by["other"].right) == (approx(2 / 3), approx(wilson(2, 3)), 3)
    assert found.by["label"]["1"].right == found.total.right
    assert found.unseen == {"evidence none": 5}
    assert "not judged: 1 strata of 5 pairs, such as evidence none" in found.remarks()
    interval = "{:.2f}, {:.2f}".format(*found.total.right.interval or ())
    assert found.words() == f"inspected by hand: 8.0 %, precision 0.78 [{interval}]"
    output = found.to_dict()
    assert json.loads(json.dumps(output, allow_nan=False)) == output
    assert "common" not in output["settings"]


def test_unsure_and_disputed_pairs(tmp_path):
    found = reviewed(tmp_path, ann="yyuyys", bob="ynuyys").report()
    assert (found.total.judged, found.total.unsure, found.total.disputed) == (5, 1, 1)
    assert (found.total.right.value, found.disputed) == (1, 1)
    assert (found.people["ann"].skipped, found.people["ann"].minutes) == (1, 0.1)
    # They agree on three of four, bob says no once.
    assert found.kappa["ann", "bob"].value == 0
    assert found.to_dict()["kappa"]["ann and bob"]["n"] == 4


def test_kappa(tmp_path):
    found = reviewed(tmp_path, ann="ynyyyy", bob="ynyynn").report()
    # 4 of 6 agree; by chance 5/6 * 3/6 + 1/6 * 3/6 = 1/2
    low, high = found.kappa["ann", "bob"].interval or (0, 0)
    assert f"kappa 0.33 [{low:.2f}, {high:.2f}]" in found.words()


def test_relations(tmp_path):
    pairs = [pair(f"a{n}", f"b{n}", relation="same") for n in range(2)]
    review = pairkit.review(pairs, tmp_path / "d.review", n=2)
    judge_all(review, relation="related")
    judge_all(
        review,
        lambda texts: "yes" if "a0" in texts else "skip",
        "bob",
        relation="duplicate",
    )
    given_relations = review.report().by["relation that people gave"]
    assert {*given_relations} == {"duplicate", "related"}


def test_three_reviewers(tmp_path):
    found = reviewed(tmp_path, ann="yynnyy", bob="yynyyy", dora="ynnnss").report()
    assert [*found.kappa] == [("ann", "bob"), ("ann", "dora"), ("bob", "dora")]
    assert f"alpha {found.alpha.value:.2f} [" in found.words()
    assert found.alpha.n == 6
    assert "ann and dora" in repr(found)
    assert "Krippendorff" in found._repr_html_()


def test_grades(tmp_path):
    review = reviewed(tmp_path, (1.0, 1.0, 1.0, 1.0, 4.5), ann="1152s", bob="2312s")
    found = review.report()
    # scores of 1 against mean grades of 1.5, 2, 3 and 2
    assert found.words().startswith("inspected by hand: 80.0 %, right 0.75 [")
    assert found.disputed == 2  # by more than one grade
    assert sorted(pairkit.read(review.path)["test"]["label"]) == [1.5, 2, 2, 3]


@table("""
    label, grades, answer, right
    1 | None | yes | True
    0 | None | yes | False
    1 | True | "3" | True
    1 | True | "2" | False
    0 | True | "2" | True
    3.2 | None | "4" | True
    3.2 | None | "5" | False
    0.5 | None | "3" | True
    0.5 | False | yes | True
    2.4 | False | yes | False
""")
def test_right_labels(tmp_path, label, grades, answer, right):
    pairs = [pair("a", "b", label)]
    review = pairkit.review(pairs, tmp_path / "d.review", grades=grades)
    judge_all(review, lambda _: answer)
    assert review.report().total.right.value == right


def test_card_section(tmp_path):
    folder = tmp_path / "data"
    pairkit.write([pair("a", "b")], folder)
    before = (folder / "README.md").read_text()
    review = reviewed(tmp_path, ann="yyynss")
    review.report().save_card(folder)
    once = (folder / "README.md").read_text()
    assert once.count("## Inspected by hand\n") == 1
    assert once.index("## Inspected by hand") < once.index("## Limitations")
    assert "Inspected by hand: 66.7 %, precision 0.75 [0.30, 0.95]." in once
    judge_all(review, person="bob")
    review.report().save_card(folder)
    twice = (folder / "README.md").read_text()
    assert twice.count("## Inspected by hand\n") == 1
    assert "6 of 6 pairs were judged by 2 people" in twice
    a, b = twice.index("## Inspected by hand"), twice.index("## Limitations")
    assert twice[:a] + twice[b:] == before
    with config_error("no readable dataset card"):
        review.report().save_card(tmp_path / "nothing")


def test_majority(tmp_path):
    review = reviewed(tmp_path, (1,) * 5, ann="yyyus", bob="ynnss", cid="nsnss")
    pairs = pairkit.read(review.path)
    assert pairs.label_kind == "binary"
    assert sorted(pairs["test"].rows()) == values("""
        0 one | other 0 | 1 | ['ann', 'bob', 'cid']
        2 one | other 2 | 0 | ['ann', 'bob', 'cid']
    """)
    found = review.report()
    assert (found.total.unsure, found.total.disputed, found.disputed) == (1, 1, 3)


def test_reviews_without_results(tmp_path):
    review = reviewed(tmp_path, (1,))
    with data_error("no pair is judged yet"):
        review.report()
    judge_all(review, lambda _: "unsure")
    with data_error("no pair is decided yet"):
        pairkit.read(review.path)


@parametrize(
    "change, message",
    [
        ("PRAGMA application_id = 7", "not a review"),
        ("DELETE FROM settings", "a review without settings"),
    ],
)
def test_other_databases_are_refused(tmp_path, change, message):
    path = reviewed(tmp_path, (1,)).path
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.execute(change)
    with data_error(message):
        pairkit.read(path)


@pytest.fixture
def dataset(tmp_path):
    made = pairkit.write(
        {"train": rows(20)[:14], "test": rows(20)[14:]}, tmp_path / "d"
    )
    assert made.out is not None
    return made.out


def judged_by_ann(dataset, answers):
    """Judge all pairs by their texts, by default `yes`."""
    judge_all(
        pairkit.review(dataset, n=1000),
        lambda text: answers.get(text.split()[1], "yes"),
    )


def test_rejected_pairs(dataset, tmp_path):
    judged_by_ann(dataset, {"0": "no", "1": "no", "2": "unsure", "19": "no"})
    before = pairkit.read(dataset)
    made = pairkit.apply_review(dataset, tmp_path / "out")
    # negatives are 0, 3, 6, …, of which only 0 was confirmed; positives 1 and 19 were rejected
    wrong = [*range(3, 20, 3), 1, 19]
    assert made.statistics["dropped_pairs"] == {"rejected_by_people": len(wrong)}
    assert made.statistics["reviewed_pairs"] == 20 - len(wrong)
    assert len(made.pairs) == len(before) - len(wrong)
    third = made.pairs.rows.filter(text1=rows()[2]["text1"])
    assert third["decision"].item() == "unsure"
    assert set(made.dropped["left_out"]) == {"rejected_by_people"}
    assert pairkit.read(tmp_path / "out").label_kind == "binary"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "## Inspected by hand" in card
    assert "| rejected by people | 8 |" in card


def test_relabelled_pairs(dataset, tmp_path):
    judged_by_ann(dataset, {"0": "no", "1": "no", "2": "unsure"})
    made = pairkit.apply_review(dataset, tmp_path / "out", relabel=True)
    rows = made.pairs.rows.to_dicts()
    labels = {row["text1"].split()[1]: row["label"] for row in rows}
    assert labels == {str(place): int(place > 1) for place in range(20)}
    assert made.statistics["relabelled_pairs"] == 7  # six negatives and pair 1
    assert made.statistics["dropped_pairs"] == {}


def test_all_rows_of_a_pair(tmp_path):
    pairs = [pair("a b", "c d"), pair("e f", "g h")]
    turned = pair("c d", "a b")
    store = tmp_path / "r.review"
    judge_all(
        pairkit.review(pairs, store, n=1000),
        lambda text: "no" if "a" in text else "yes",
    )
    made = pairkit.apply_review([*pairs, turned], store=store)
    assert made.statistics["dropped_pairs"] == {"rejected_by_people": 2}


def test_graded_dataset(tmp_path):
    pairs = [pair(f"a {n}", f"b {n}", n / 10) for n in range(10)]
    store = tmp_path / "r.review"
    judge_all(pairkit.review(pairs, store, n=1000), lambda _: "4")
    made = pairkit.apply_review(pairs, store=store, relabel=True)
    labels = dict(made.pairs.rows.select("text1", "label").iter_rows())
    # grade 4 is 0.8; labels within one grade, from 0.6 on, are unchanged
    expected = {f"a {n}": n / 10 if n >= 6 else 0.8 for n in range(10)}
    assert labels == approx(expected, abs=1e-3)
    assert made.statistics["relabelled_pairs"] == 6


def test_leaks_write_nothing(dataset, tmp_path):
    judged_by_ann(dataset, {})
    leaking = {"train": rows(20), "test": rows(20)[3:5]}
    with raises(LeakError):
        pairkit.apply_review(leaking, tmp_path / "out", store=tmp_path / "d.review")
    assert not (tmp_path / "out").exists()


def test_missing_or_other_review(dataset, tmp_path):
    with config_error("no such review"):
        pairkit.apply_review(dataset, tmp_path / "out")
    judged_by_ann(dataset, {})
    with data_error("has no pair of"):
        pairkit.apply_review([pair("x", "y")], store=tmp_path / "d.review")


@table("""
    right, n, low, high
    8 | 10 | 0.4902 | 0.9433
    0 | 10 | 0.0 | 0.2775
    10 | 10 | 0.7225 | 1.0
    1 | 1 | 0.2065 | 1.0
""")
def test_wilson(right, n, low, high):
    assert wilson(right, n) == approx((low, high), abs=1e-4)
    assert wilson(0, 0) is None


# Krippendorff's own example with missing data: four judges, twelve units.
_NOBODY = None
JUDGES = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _NOBODY, _NOBODY, _NOBODY],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _NOBODY, 3],
    [_NOBODY, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _NOBODY],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _NOBODY],
]


def test_alpha():
    units = [
        [answer for answer in unit if answer is not None]
        for unit in zip(*JUDGES, strict=True)
    ]
    assert krippendorff_alpha(units).value == approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units, "interval").value == approx(0.849, abs=5e-4)
    low, high = krippendorff_alpha(units).interval or (0, 0)
    assert 0.3 < low < 0.743 < high <= 1
    assert krippendorff_alpha(units).n == 11  # the twelfth was judged by one alone


def test_interval_of_perfect_agreement():
    assert cohen_kappa([], []) == Figure(None, None, 0)
    # Wilson's bound for 50 of 50 is 0.9287: of 50 pairs 3.57 may be disagreements, by chance half of them are
    found = cohen_kappa([1] * 25 + [0] * 25, [1] * 25 + [0] * 25)
    assert found.value == 1
    assert found.interval == approx((1 - (1 - 0.92865) / 0.5, 1), abs=1e-4)
    low, high = krippendorff_alpha([[1, 1]] * 25 + [[0, 0]] * 25).interval or (0, 0)
    assert (low, high) == approx((0.8587, 1), abs=1e-3)
    few = cohen_kappa([5, 0, 4], [5, 0, 4], "interval").interval or (1, 1)
    assert few[0] < 0.95


def test_keyed_hash():
    assert keyed_hash(0, "split", "o/n#1") == 8697922999653496411
    assert keyed_hash(0, "a", "b") != keyed_hash(0, "ab")
    assert keyed_hash(0, "a") != keyed_hash(1, "a")


SIZES = st.dictionaries(st.text(max_size=3), st.integers(0, 30), max_size=14)


@given(SIZES, st.integers(0, 40))
def test_in_turns(sizes, total):
    dealt = in_turns(sizes, total)
    filled = {kind: size for kind, size in sizes.items() if size}
    assert set(dealt) == set(filled)
    assert sum(dealt.values()) == min(total, sum(filled.values()))
    unfilled = [places for kind, places in dealt.items() if places < filled[kind]]
    assert max(dealt.values(), default=0) <= min(unfilled, default=99) + 1


@given(SIZES, st.integers(0, 400), st.integers(0, 3))
def test_any_proportions(sizes, total, least):
    dealt = in_proportion(sizes, total, least)
    assert dealt.keys() == sizes.keys()
    assert sum(dealt.values()) == min(total, sum(sizes.values()))
    assert all(0 <= dealt[kind] <= size for kind, size in sizes.items())
    if total >= least * len(sizes):
        assert all(dealt[kind] >= min(least, size) for kind, size in sizes.items())
