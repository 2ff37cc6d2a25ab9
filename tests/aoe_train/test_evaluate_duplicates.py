"""Duplicates among all reports of a tracker: files, candidates and metrics."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train import evaluate
from tests.aoe_train.refusals import config_error, data_error


def at_angles(degrees):
    """A model that places texts on a circle; unknown texts are opposite to 0."""

    def model(texts):
        turns = np.radians([degrees.get(text, 180) for text in texts])
        return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)

    return model


def evaluated(data, reports=None, *, model=None, ranking="model", **options):
    """The scores of one ranking."""
    how = {"resamples": 0, **options}
    found = evaluate(model or at_angles({}), suite="tracker", data=data, reports=reports, **how)
    ((_, scores),) = found.to_dict()[ranking].items()
    return dict(scores)


def tracker_of(days):
    """Reports a, b, c …, written on these days of 2020."""
    ids = [*"abcdefghijklm"][: 6 if days is None else len(days)]
    reports = pl.DataFrame({"id": ids, "text": ids})
    if days is None:
        return reports
    return reports.with_columns(created=pl.Series([f"2020-01-{1 + day:02}" for day in days]))


def pairs_of(*pairs):
    return pl.DataFrame(pairs, schema=["duplicate", "canonical"], orient="row")


@pytest.mark.parametrize(
    "days, pairs, nearest, expected",
    [
        # a is the newest; c comes first, then b and d
        (
            [5, 1, 3, 2],
            [("b", "a"), ("a", "d")],
            "acbd",
            {"n": 1, "mrr": 1 / 2, "map": (1 / 2 + 2 / 3) / 2},
        ),
        # b was written at the same time as c, so only a is a candidate
        ([1, 2, 2, 3], [("c", "b"), ("c", "a")], "cbda", {"n": 1, "mrr": 1, "map": 1}),
        # without times the duplicate is compared with all others
        (None, [("a", "f")], "abcdef", {"n": 1, "mrr": 1 / 5, "map": 1 / 5}),
    ],
)
def test_newer_reports_are_queries_and_older_ones_candidates(days, pairs, nearest, expected):
    model = at_angles({text: 10 * place for place, text in enumerate(nearest)})
    found = evaluated(pairs_of(*pairs), tracker_of(days), model=model)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.data())
def test_metrics_equal_those_of_a_sorted_list(scores, data):
    """Compared with ranks by sorting; targets are last among ties, and other duplicates aren't ranked."""
    ids = [*"abcdefghijklm"][: len(scores) + 1]
    places = st.integers(0, len(scores) - 1)
    alike = data.draw(st.lists(places, min_size=1, max_size=len(scores), unique=True))
    relatives = [(ids[alike[0]], ids[place]) for place in alike[1:]]
    model = at_angles(
        {id_: 30 * (5 - score) for id_, score in zip(ids, scores, strict=False)} | {ids[-1]: 0}
    )
    splits = {
        "test": pairs_of((ids[-1], ids[alike[0]])),
        **({"train": pairs_of(*relatives)} if relatives else {}),
    }
    found = evaluated(splits, tracker_of(range(len(ids))), model=model)
    listed = sorted(range(len(scores)), key=lambda place: (-scores[place], place in alike))
    without = [place for place in listed if place not in alike[1:]]
    assert found["mrr"] == pytest.approx(1 / (1 + without.index(alike[0])))
    hits = [rank for rank, place in enumerate(listed, 1) if place in alike]
    assert found["map"] == pytest.approx(
        np.mean([number / rank for number, rank in enumerate(hits, 1)])
    )


def test_parts_are_by_length_and_by_age():
    texts = ["short", "short too", "long " * 300]
    reports = tracker_of([0, 3, 30]).with_columns(text=pl.Series(texts))
    found = evaluated(pairs_of(("b", "a"), ("c", "a")), reports)
    assert {name: part["n"] for name, part in found["subsets"].items()} == {
        "<128 tokens": 1,
        "256-511 tokens": 1,
        "<7 days": 1,
        "30-364 days": 1,
    }


def test_the_weight_is_chosen_only_on_the_known_split():
    """Vectors are right in validation and words in test, which must not be used."""
    texts = ["apple", "pear", "apple two", "plum", "red plum", "car"]
    reports = pl.DataFrame({"id": [*"abcdef"], "text": texts})
    vectors = np.array([[1, 0], [0, 1], [0.1, 1], [-1, 0], [0.9, -0.1], [0, -1]], np.float32)

    def model(asked):
        return vectors[[texts.index(text) for text in asked]]

    data = {"test": pairs_of(("e", "d")), "validation": pairs_of(("c", "b"))}
    # from 1 / 1.45 on: apple has the words, and 0.55 of the vectors
    assert evaluated(data, reports, model=model, ranking="model + BM25")["weight"] == 0.7
    assert evaluated(data, reports, model=model)["recall@1"] == 0
    for ranking in ("BM25", "TF-IDF"):
        assert evaluated(data, reports, model=model, ranking=ranking)["recall@1"] == 1
    default = evaluated({"test": data["test"]}, reports, model=model, ranking="model + BM25")[
        "weight"
    ]
    assert default == 0.65


REPORTS = [
    ("the car panics", "when opening a file"),
    ("slow boat", ""),
    ("red bird is flying", "a bird"),
    ("error when saving", "the file"),
    ("car panics", "opening the file"),
    ("the boat is slow", "on the river"),
    ("", " "),
    ("bird is flying red", "old bird"),
    ("saving error", "a file"),
]


def write_tracker(folder, *, created=True):
    """Nine reports, four of them duplicates in two splits, as plain files."""
    reports = pl.DataFrame(REPORTS, schema=["title", "body"], orient="row").with_row_index(
        "id", offset=10
    )
    if created:
        reports = reports.with_columns(created=pl.format("2020-01-{}T12:00:00Z", pl.col("id") + 1))
    reports.write_ndjson(folder / "reports.jsonl")
    pairs = folder / "pairs"
    pairs.mkdir()
    (pairs / "test.tsv").write_text("duplicate\tcanonical\n14\t10\n15\t11\n16\t10\n99\t10\n")
    (pairs / "validation.csv").write_text("duplicate,canonical,label\n17,12,1\n18,13,1\n18,10,0\n")
    return {"data": pairs, "reports": folder / "reports.jsonl"}


def test_plain_files_and_notes_on_dropped_pairs(tmp_path, capsys):
    files = write_tracker(tmp_path)
    seen = []

    def model(texts):
        seen.extend(texts)
        return at_angles({})(texts)

    assert evaluated(**files, model=model, progress=True)["n"] == 2
    assert {"the car panics\n\nwhen opening a file", "slow boat"} < {*seen}
    told = capsys.readouterr().err
    assert (
        "pairs: left out of 4 pairs of test: 1 that contain a report without text, 1 that contain"
        in told
    )
    assert "pairs: left out 1 reports without text" in told
    assert evaluated(**files, split="validation")["n"] == 2
    (files["data"] / "test.tsv").unlink()
    with data_error(r"no split 'test'; choose one of validation"):
        evaluated(**files)


def test_a_file_without_times(tmp_path, capsys):
    files = write_tracker(tmp_path, created=False)
    file = {**files, "data": files["data"] / "test.tsv"}
    assert evaluated(**file, progress=True)["n"] == 2
    note = "test.tsv: no times (a column created), so candidates include newer reports"
    assert note in capsys.readouterr().err
    with config_error("has no splits; leave split= out"):
        evaluated(**file, split="validation")


def test_ids_from_gis_or_renamed_columns():
    created = ["2020-01-01", "2020-01-02T00:00:00+01:00", "2020-01-03 10:00:00"]
    ids, texts = ["ann/boat#1", "ann/boat#2", "bob/car#2"], ["slow", "slow boat", "slow car"]
    rows = {"text1": "x", "text2": "y", "repo": "ann/boat", "number1": 1, "number2": 2}
    of_gis = pl.DataFrame({"id": ids, "text": texts, "created_at": created})
    found = evaluated([{**rows, "label": 1}, {**rows, "number2": 3, "label": 0}], of_gis)
    assert (found["n"], found["mrr"]) == (1, 1)
    across = {**rows, "number1": 2, "repo2": "bob/car"}
    found = evaluated([{**across, "label": 1}, {**across, "repo2": None, "label": 0}], of_gis)
    assert (found["n"], found["mrr"]) == (1, 1 / 2)
    reports = pl.DataFrame({"id": [1, 2], "summary": ["a", "b"]})
    pairs = pl.DataFrame({"bug": [1], "dup_of": ["2"]})
    assert evaluated(pairs, reports, columns={"duplicate": "bug", "canonical": "dup_of"})["n"] == 1
    with config_error("columns=: found text1; with reports= expected duplicate and"):
        evaluated(pairs, reports, columns={"text1": "bug"})


def test_pairs_of_texts_without_reports(tmp_path, capsys):
    file = tmp_path / "pairs.tsv"
    file.write_text("text1\ttext2\tlabel\na\tb\t1\nc\ta\t0\nd\td\t1\n")
    found = evaluated(file, model=at_angles({"a": 0, "c": 10, "b": 20}), progress=True)
    assert (found["n"], found["mrr"]) == (1, 1 / 2)
    told = capsys.readouterr().err
    assert "pairs.tsv: no reports=, so only the 4 texts of the pairs are searched" in told
    assert "1 that contain one report twice" in told


@pytest.mark.parametrize(
    "reports, pairs, message",
    [
        ({"id": [1, 1], "title": ["a", "b"]}, {}, "1 ids occur in several rows, first 1"),
        ({"number": [1, 2]}, {}, "expected id, text or title and body"),
        ({"id": [1, None], "title": ["a", "b"]}, {}, "no id; expected an id"),
        ({"id": [1.5], "title": ["a"]}, {}, "id has the type Float64; expected strings"),
        ({"id": [1], "title": [" "]}, {}, "no report has a text"),
        ({"id": [1], "title": ["a"], "created": ["May"]}, {}, "created is 'May'; expected a date"),
        ({}, {"one": [1], "two": [2]}, "found the columns one, two; expected duplicate"),
        (
            {},
            {"duplicate": [1], "canonical": [2], "label": ["yes"]},
            "label is 'yes'; expected 0 or 1",
        ),
        ({}, {"duplicate": [1], "canonical": [7]}, "no usable pair of reports"),
    ],
)
def test_invalid_trackers(reports, pairs, message):
    table = pl.DataFrame(reports or {"id": [1, 2], "title": ["a", "b"]})
    with data_error(message):
        evaluated(pl.DataFrame(pairs or {"duplicate": [1], "canonical": [2]}), table)


def test_time_formats():
    """In order of time: d, b, c, a; so a has three candidates, of which b is its duplicate."""
    times = ["30/Sep/21 17:20", "2021-09-30T17:00:00", "2021-09-30T19:10:00+02:00", "2021-09-30"]
    reports = tracker_of([0] * 4).with_columns(created=pl.Series(times))
    model = at_angles({"a": 0, "c": 10, "d": 20, "b": 30})
    assert evaluated(pairs_of(("b", "a")), reports, model=model)["mrr"] == pytest.approx(1 / 3)
    assert evaluated(pairs_of(("b", "c")), reports, model=model)["mrr"] == pytest.approx(1 / 2)
