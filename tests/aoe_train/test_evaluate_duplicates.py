"""Duplicates among all reports of a tracker: files, candidates and metrics."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train import evaluate
from tests.aoe_train.shorthand import stderr
from tests.aoe_train.tiny import on_circle
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    table,
    text_lines,
    values,
)


def at_angles(degrees):
    """A model that places texts on a circle; unknown texts are opposite to 0."""

    def model(texts):
        return on_circle([degrees.get(text, 180) for text in texts])

    return model


def evaluated(data, reports=None, model=None, ranking="model", **options):
    """The scores of one ranking."""
    how = {"resamples": 0, "suite": "tracker", "reports": reports, **options}
    found = evaluate(model or at_angles({}), data=data, **how)
    (scores,) = found.to_dict()[ranking].values()
    return scores


def tracker_of(days=None):
    """Reports a, b, c …, written on these days of 2020."""
    ids = [*"abcdefghijklm"][: len(days or range(6))]
    reports = pl.DataFrame({"id": ids, "text": ids})
    if days is None:
        return reports
    return reports.with_columns(
        created=pl.Series([f"2020-01-{1 + day:02}" for day in days])
    )


def pairs_of(*pairs):
    return pl.DataFrame(
        [[*pair] for pair in pairs], ["duplicate", "canonical"], orient="row"
    )


@table(
    """
    days, pairs, nearest, expected
    # a is the newest; c comes first, then b and d: map (1 / 2 + 2 / 3) / 2
    [5, 1, 3, 2] | ba ad | acbd | {'n': 1, 'mrr': 0.5, 'map': 0.58333333}
    # b was written at the same time as c, so only a is a candidate
    [1, 2, 2, 3] | cb ca | cbda | {'n': 1, 'mrr': 1, 'map': 1}
    # without times the duplicate is compared with all others
    None | af | abcdef | {'n': 1, 'mrr': 0.2, 'map': 0.2}
    """,
)
def test_newer_reports_are_queries_and_older_ones_candidates(
    days, pairs, nearest, expected
):
    model = at_angles({text: 10 * place for place, text in enumerate(nearest)})
    found = evaluated(pairs_of(*pairs.split()), tracker_of(days), model=model)
    assert {name: found[name] for name in expected} == approx(expected)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.data())
def test_metrics_equal_those_of_a_sorted_list(scores, data):
    """Compared with ranks by sorting; targets are last among ties, and other duplicates aren't ranked."""
    *ids, newest = [*"abcdefghijklm"][: len(scores) + 1]
    places = st.integers(0, len(scores) - 1)
    alike = data.draw(st.lists(places, min_size=1, max_size=len(scores), unique=True))
    target, *relatives = (ids[place] for place in alike)
    angles = {name: 30 * (5 - score) for name, score in zip(ids, scores, strict=True)}
    splits = {"test": pairs_of((newest, target))}
    if relatives:
        splits["train"] = pairs_of(*((target, relative) for relative in relatives))
    days = range(len(scores) + 1)
    found = evaluated(splits, tracker_of(days), model=at_angles(angles | {newest: 0}))
    listed = sorted(
        range(len(scores)), key=lambda place: (-scores[place], place in alike)
    )
    without = [place for place in listed if place not in alike[1:]]
    assert found["mrr"] == approx(1 / (1 + without.index(alike[0])))
    hits = [rank for rank, place in enumerate(listed, 1) if place in alike]
    assert found["map"] == approx(
        np.mean([number / rank for number, rank in enumerate(hits, 1)])
    )


def test_parts_are_by_length_and_by_age():
    texts = ["short", "short too", "long " * 300]
    reports = tracker_of([0, 3, 30]).with_columns(text=pl.Series(texts))
    parts = evaluated(pairs_of("ba", "ca"), reports)["subsets"]
    assert [*parts] == ["<128 tokens", "256-511 tokens", "<7 days", "30-364 days"]
    assert {part["n"] for part in parts.values()} == {1}


def test_the_weight_is_chosen_only_on_the_known_split():
    """Vectors are right in validation and words in test, which must not be used."""
    vectors = dict(
        values("""
            apple | [1, 0]
            pear | [0, 1]
            apple two | [0.1, 1]
            plum | [-1, 0]
            red plum | [0.9, -0.1]
            car | [0, -1]
            """)
    )
    reports = pl.DataFrame({"id": [*"abcdef"], "text": [*vectors]})

    def model(asked):
        return np.float32([vectors[text] for text in asked])

    def scores(ranking, **data):
        return evaluated(data, reports, model=model, ranking=ranking)

    data = {"test": pairs_of("ed"), "validation": pairs_of("cb")}
    # from 1 / 1.45 on: apple has the words, and 0.55 of the vectors
    assert scores("model + BM25", **data)["weight"] == 0.7
    assert scores("model", **data)["recall@1"] == 0
    for ranking in ("BM25", "TF-IDF"):
        assert scores(ranking, **data)["recall@1"] == 1
    assert scores("model + BM25", test=data["test"])["weight"] == 0.65


REPORTS = """id,title,body
10,the car panics,when opening a file
11,slow boat,
12,red bird is flying,a bird
13,error when saving,the file
14,car panics,opening the file
15,the boat is slow,on the river
16,," "
17,bird is flying red,old bird
18,saving error,a file
"""


def write_tracker(folder, created=True):
    """Nine reports, four of them duplicates in two splits, as plain files."""
    reports = pl.read_csv(REPORTS.encode())
    if created:
        reports = reports.with_columns(
            created=pl.format("2020-01-{}T12:00:00Z", pl.col("id") + 1)
        )
    reports.write_ndjson(folder / "reports.jsonl")
    pairs = folder / "pairs"
    pairs.mkdir()
    (pairs / "test.tsv").write_text(
        "duplicate\tcanonical\n14\t10\n15\t11\n16\t10\n99\t10\n"
    )
    (pairs / "validation.csv").write_text(
        "duplicate,canonical,label\n17,12,1\n18,13,1\n18,10,0\n"
    )
    return {"data": pairs, "reports": folder / "reports.jsonl"}


def test_plain_files_and_notes_on_dropped_pairs(tmp_path, capsys):
    files = write_tracker(tmp_path)
    seen = []

    def model(texts):
        seen.extend(texts)
        return at_angles({})(texts)

    assert evaluated(**files, model=model)["n"] == 2
    assert {"the car panics\n\nwhen opening a file", "slow boat"} < {*seen}
    told = stderr(capsys)
    lost = "pairs: left out of 4 pairs of test: 1 that contain a report without text, 1 that contain"
    assert lost in told
    assert "pairs: left out 1 reports without text" in told
    assert evaluated(**files, split="validation")["n"] == 2
    (files["data"] / "test.tsv").unlink()
    assert evaluated(**files)["n"] == 2
    with data_error(r"no split 'test'; choose one of validation"):
        evaluated(**files, split="test")


def test_a_file_without_times(tmp_path, capsys):
    files = write_tracker(tmp_path, created=False)
    file = {**files, "data": files["data"] / "test.tsv"}
    assert evaluated(**file, progress=True)["n"] == 2
    note = "test.tsv: no times (a column created), so candidates include newer reports"
    assert note in stderr(capsys)
    with config_error("has no splits; leave split= out"):
        evaluated(**file, split="validation")


def test_ids_from_gis_or_renamed_columns():
    created = ["2020-01-01", "2020-01-02T00:00:00+01:00", "2020-01-03 10:00:00"]
    ids = ["ann/boat#1", "ann/boat#2", "bob/car#2"]
    texts = ["slow", "slow boat", "slow car"]
    of_gis = pl.DataFrame({"id": ids, "text": texts, "created_at": created})
    rows = {"text1": "x", "text2": "y", "repo": "ann/boat", "number1": 1, "number2": 2}
    across = {**rows, "number1": 2, "repo2": "bob/car"}
    for same, other, mrr in (
        (rows, {"number2": 3}, 1),
        (across, {"repo2": None}, 1 / 2),
    ):
        pairs = [{**same, "label": 1}, {**same, **other, "label": 0}]
        found = evaluated(pairs, of_gis)
        assert (found["n"], found["mrr"]) == (1, mrr)
    reports = pl.DataFrame({"id": [1, 2], "summary": ["a", "b"]})
    pairs = pl.DataFrame({"bug": [1], "dup_of": ["2"]})
    columns = {"duplicate": "bug", "canonical": "dup_of"}
    assert evaluated(pairs, reports, columns=columns)["n"] == 1
    with config_error("columns=: found text1; with reports= expected duplicate and"):
        evaluated(pairs, reports, columns={"text1": "bug"})


def test_pairs_of_texts_without_reports(tmp_path, capsys):
    file = tmp_path / "pairs.tsv"
    file.write_text("text1\ttext2\tlabel\na\tb\t1\nc\ta\t0\nd\td\t1\n")
    found = evaluated(file, model=at_angles({"a": 0, "c": 10, "b": 20}), progress=True)
    assert (found["n"], found["mrr"]) == (1, 1 / 2)
    told = stderr(capsys)
    assert (
        "pairs.tsv: no reports=, so only the 4 texts of the pairs are searched" in told
    )
    assert "1 that contain one report twice" in told


@table(
    """
    reports, pairs, message
    {'id': [1, 1], 'title': ['a', 'b']} | PAIR | 1 ids occur in several rows, first 1
    {'number': [1, 2]} | PAIR | expected id, text or title and body
    {'id': [1, None], 'title': ['a', 'b']} | PAIR | no id; expected an id
    {'id': [1.5], 'title': ['a']} | PAIR | id has the type Float64; expected strings
    {'id': [1], 'title': [' ']} | PAIR | no report has a text
    {'id': [1], 'title': ['a'], 'created': ['May']} | PAIR | created is 'May'; expected a date
    TWO | {'one': [1], 'two': [2]} | found the columns one, two; expected duplicate
    TWO | {'duplicate': [1], 'canonical': [2], 'label': ['yes']} | label is 'yes'; expected 0 or 1
    TWO | {'duplicate': [1], 'canonical': [7]} | no usable pair of reports
    """,
    TWO={"id": [1, 2], "title": ["a", "b"]},
    PAIR={"duplicate": [1], "canonical": [2]},
)
def test_invalid_trackers(reports, pairs, message):
    with data_error(message):
        evaluated(pl.DataFrame(pairs), pl.DataFrame(reports))


def test_time_formats():
    """In order of time: d, b, c, a; so a has three candidates, of which b is its duplicate."""
    times = text_lines("""
        30/Sep/21 17:20
        2021-09-30T17:00:00
        2021-09-30T19:10:00+02:00
        2021-09-30
    """)
    reports = tracker_of([0] * 4).with_columns(created=pl.Series(times))
    model = at_angles({"a": 0, "c": 10, "d": 20, "b": 30})
    assert evaluated(pairs_of("ba"), reports, model=model)["mrr"] == approx(1 / 3)
    assert evaluated(pairs_of("bc"), reports, model=model)["mrr"] == approx(1 / 2)
