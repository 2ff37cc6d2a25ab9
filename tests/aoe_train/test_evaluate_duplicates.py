"""Duplicates among all reports of a tracker: files, candidates and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.evaluation.duplicate_tables import read_duplicates
from aoe_train.evaluation.duplicates import (
    DuplicateQuery,
    DuplicatesTask,
    TrackerReports,
    build_tracker,
    metrics,
    sorted_reports,
    task_metrics,
)
from aoe_train.evaluation.pair_task import PairSource
from aoe_train.evaluation.tasks import TaskVectors
from pairkit import ConfigError, DataError

NEW_YEAR = datetime(2020, 1, 1, tzinfo=UTC)


def tracker_of(days: Sequence[float] | None, **pairs: Sequence[tuple[str, str]]) -> Any:
    """A tracker of reports a, b, c …, written on these days after New Year."""
    size = 6 if days is None else len(days)
    times = None if days is None else [NEW_YEAR + timedelta(days=day) for day in days]
    ids = [*"abcdefghij"][:size]
    return build_tracker("bugs", sorted_reports(ids, [f"text {id_}" for id_ in ids], times, "reports"), pairs)


@pytest.mark.parametrize(
    ("days", "pairs", "queries"),
    [
        # a asks; b, d, c are older
        ([5, 1, 3, 2], [("b", "a"), ("a", "d")], [DuplicateQuery(3, 3, (0, 1), ())]),
        ([1, 2, 2, 3], [("c", "b"), ("c", "a")], [DuplicateQuery(2, 1, (0,), ())]),  # b is of c's moment
        (None, [("a", "f")], [DuplicateQuery(0, 6, (5,), ())]),  # the duplicate asks among all others
    ],
)
def test_newer_reports_are_queries_and_older_ones_candidates(
    days: list[float] | None, pairs: list[tuple[str, str]], queries: list[DuplicateQuery]
):
    tracker = tracker_of(days, test=pairs)
    assert tracker.queries["test"] == queries
    assert sum(tracker.dropped["test"].values()) == (days == [1, 2, 2, 3])
    assert tracker.reports.ids == (["b", "d", "c", "a"] if days == [5, 1, 3, 2] else tracker.reports.ids)


def test_relatives_come_from_pairs_of_all_splits():
    tracker = tracker_of([1, 2, 3, 4, 5, 6], test=[("d", "b")], train=[("b", "a"), ("f", "d")])
    assert tracker.queries["test"] == [DuplicateQuery(3, 3, (1,), (0,))]  # f says the same but is younger
    assert tracker.queries["train"] == [DuplicateQuery(1, 1, (0,), ()), DuplicateQuery(5, 5, (3,), (0, 1))]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.data())
def test_metrics_equal_those_of_a_sorted_list(scores: list[int], data: st.DataObject):
    """Compared with ranks by sorting; targets come last among ties."""
    size = len(scores)
    alike = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
    targets, relatives = alike[:1], alike[1:]
    found = metrics(
        [DuplicateQuery(size, size, tuple(targets), tuple(sorted(relatives)))],
        lambda _: np.array(scores, float),
    )
    listed = sorted(range(size), key=lambda place: (-scores[place], place in alike))
    without = [place for place in listed if place not in relatives]
    assert found["mrr"][0] == pytest.approx(1 / (1 + without.index(targets[0])))
    hits = [rank for rank, place in enumerate(listed, 1) if place in alike]
    assert found["map"][0] == pytest.approx(np.mean([number / rank for number, rank in enumerate(hits, 1)]))


def test_parts_are_by_length_and_by_age():
    texts = ["short", "short too", "long " * 300]
    reports = TrackerReports(["a", "b", "c"], texts, [NEW_YEAR + timedelta(days=day) for day in (0, 3, 40)])
    queries = [DuplicateQuery(1, 1, (0,), ()), DuplicateQuery(2, 2, (0, 1), ())]
    found = task_metrics(reports, queries, lambda query: np.zeros(query.candidates))
    assert {name: n for name, (_, n) in found.parts.items()} == {
        "<128 tokens": 1,
        "256-511 tokens": 1,
        "<7 days": 1,
        "30-364 days": 1,  # to the youngest of what it asks for
    }


def test_the_weight_is_chosen_only_on_the_known_split():
    """Vectors are right in validation and words in test, which must not be used."""
    texts = ["apple", "pear", "apple two", "plum", "red plum", "car"]
    reports = TrackerReports([*"abcdef"], texts, None)
    pairs = {"test": [("e", "d")], "validation": [("c", "b")]}
    tracker = build_tracker("bugs", reports, pairs)
    vectors = np.array([[1, 0], [0, 1], [0.1, 1], [-1, 0], [0.9, -0.1], [0, -1]], np.float32)
    made = TaskVectors(lambda asked: vectors[[texts.index(text) for text in asked]], [texts])
    task = DuplicatesTask(tracker, "test", "validation")
    near = task.by_vectors(made)
    # from 1 / 1.45 on: apple has the words, and 0.55 of the vectors
    assert task.chosen_weight(near, "bm25") == 0.7
    assert DuplicatesTask(tracker, "test").chosen_weight(near, "bm25") is None
    assert task.measure(made).whole.scores()["recall@1"] == 0
    assert task.ranked(task.by_words("bm25")).whole.scores()["recall@1"] == 1
    assert task.by_both(near, "tfidf", 0.0).whole.scores()["recall@1"] == 1


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


def read(data: Any, reports: Any = None, **options: Any) -> DuplicatesTask:
    """The task of a source that is read with these options."""
    return read_duplicates(PairSource(data, **options), reports)


def write_tracker(folder: Path, *, created: bool = True) -> dict[str, Path]:
    """Nine reports, four of them duplicates in two splits, as plain files."""
    reports = pl.DataFrame(REPORTS, schema=["title", "body"], orient="row").with_row_index("id", offset=10)
    if created:
        reports = reports.with_columns(created=pl.format("2020-01-{}T12:00:00Z", pl.col("id") + 1))
    reports.write_ndjson(folder / "reports.jsonl")
    pairs = folder / "pairs"
    pairs.mkdir()
    (pairs / "test.tsv").write_text("duplicate\tcanonical\n14\t10\n15\t11\n16\t10\n99\t10\n")
    (pairs / "validation.csv").write_text("duplicate,canonical,label\n17,12,1\n18,13,1\n18,10,0\n")
    return {"data": pairs, "reports": folder / "reports.jsonl"}


def test_plain_files_and_notes_on_dropped_pairs(tmp_path: Path):
    said: list[str] = []
    task = read(**write_tracker(tmp_path), say=said.append)
    assert task.texts[0] == "the car panics\n\nwhen opening a file"
    assert task.texts[1] == "slow boat"
    assert [(query.report, query.targets) for query in task.queries] == [(4, (0,)), (5, (1,))]
    assert task.known == "validation"
    assert task.rows[1] == ("the boat is slow\n\non the river", "slow boat")
    assert said == [
        "pairs: left out of 4 pairs of test: 1 that contain a report without text, 1 that contain an"
        " unknown report",
        "pairs: left out 1 reports without text",
    ]
    on_dev = read(tmp_path / "pairs", tmp_path / "reports.jsonl", split="validation")
    assert (on_dev.judged, on_dev.known, len(on_dev.queries)) == ("validation", None, 2)


def test_a_file_without_times(tmp_path: Path):
    files = write_tracker(tmp_path, created=False)
    said: list[str] = []
    task = read(files["data"] / "test.tsv", files["reports"], say=said.append)
    assert task.queries[0].candidates == 8
    assert said[-1] == ("test.tsv: no times (a column created), so candidates include newer reports")
    with pytest.raises(ConfigError, match="has no splits; leave split= out"):
        read(files["data"] / "test.tsv", files["reports"], split="validation")


def test_ids_from_gis_or_renamed_columns():
    created = ["2020-01-01", "2020-01-02T00:00:00+01:00", "2020-01-03 10:00:00"]
    ids, texts = ["ann/boat#1", "ann/boat#2", "bob/car#2"], ["slow", "slow boat", "slow car"]
    rows = {"text1": "x", "text2": "y", "repo": "ann/boat", "number1": 1, "number2": 2}
    of_gis = pl.DataFrame({"id": ids, "text": texts, "created_at": created})
    task = read([{**rows, "label": 1}, {**rows, "number2": 3, "label": 0}], of_gis)
    assert [(query.report, query.targets) for query in task.queries] == [(1, (0,))]
    reports, pairs = (
        pl.DataFrame({"id": [1, 2], "summary": ["a", "b"]}),
        pl.DataFrame({"bug": [1], "dup_of": ["2"]}),
    )
    task = read(pairs, reports, columns={"duplicate": "bug", "canonical": "dup_of"})
    assert task.queries == [DuplicateQuery(0, 2, (1,), ())]
    with pytest.raises(
        ConfigError, match="columns=: found text1; with reports= expected duplicate and canonical"
    ):
        read(pairs, reports, columns={"text1": "bug"})


def test_pairs_of_texts_without_reports(tmp_path: Path):
    said: list[str] = []
    file = tmp_path / "pairs.tsv"
    file.write_text("text1\ttext2\tlabel\na\tb\t1\nc\ta\t0\nd\td\t1\n")
    task = read(file, say=said.append)
    assert list(task.texts) == [*"abcd"]
    assert [(query.report, query.targets) for query in task.queries] == [(0, (1,))]
    assert said[0] == "pairs.tsv: no --reports, so only the 4 texts of the pairs are searched"
    assert "1 that contain one report twice" in said[1]


@pytest.mark.parametrize(
    ("reports", "pairs", "message"),
    [
        ({"number": [1, 2]}, {}, "expected id, text or title and body"),
        ({"id": [1, 1], "title": ["a", "b"]}, {}, "1 ids occur in several rows, first 1"),
        ({"id": [1, None], "title": ["a", "b"]}, {}, "no id; expected an id"),
        ({"id": [1.5], "title": ["a"]}, {}, "id has the type Float64; expected strings"),
        ({"id": [1], "title": [" "]}, {}, "no report has a text"),
        (
            {"id": [1], "title": ["a"], "created": ["September"]},
            {},
            "created is 'September'; expected a date",
        ),
        ({}, {"one": [1], "two": [2]}, "found the columns one, two; expected duplicate"),
        ({}, {"duplicate": [1], "canonical": [2], "label": ["yes"]}, "label is 'yes'; expected 0 or 1"),
        ({}, {"duplicate": [1], "canonical": [7]}, "no usable pair of reports"),
    ],
)
def test_invalid_trackers(reports: Mapping[str, Any], pairs: Mapping[str, Any], message: str):
    table = pl.DataFrame(reports or {"id": [1, 2], "title": ["a", "b"]})
    with pytest.raises(DataError, match=message):
        read(pl.DataFrame(pairs or {"duplicate": [1], "canonical": [2]}), table)


def test_time_formats():
    times = ["30/Sep/21 17:20", "2021-09-30T17:00:00", "2021-09-30T19:10:00+02:00", "2021-09-30"]
    reports = pl.DataFrame({"id": [1, 2, 3, 4], "title": [*"abcd"], "created": times})
    task = read(pl.DataFrame({"duplicate": [1], "canonical": [2]}), reports)
    assert task.tracker.reports.ids == ["4", "2", "3", "1"]
    assert task.queries == [DuplicateQuery(3, 3, (1,), ())]
