"""Reading scores out of judges' answers, and what becomes of them in silver labels."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_labeler
from llm_labeler._judge import SCORES, judge_asks, judge_batches, read_ratings
from llm_labeler._records import Candidate, Rating, Text
from llm_labeler._settings import JudgeSettings
from llm_labeler._silver_scores import ScoreJudge, compare
from pairkit.errors import ConfigError, DataError
from pairkit.reader import read_pairs

TEXT = Text.of("The drug lowers blood pressure.", 1)
SETTINGS = JudgeSettings()


def read(raw: str, n: int = 2, finish: str = "stop") -> str:
    """The scores as digits, `?` for none."""
    candidates = [Candidate(TEXT.text_id, f"sentence {k}", "positive", ()) for k in range(n)]
    (ask,) = judge_asks(TEXT, candidates, "bob", "", SETTINGS, 1, SCORES)
    (batch,) = judge_batches(candidates, "bob", SETTINGS, 1)
    ratings = read_ratings(ask, batch, raw, finish)
    assert [rating.candidate_id for rating in ratings] == [one.candidate_id for one in batch]
    assert {rating.judge for rating in ratings} == {"bob"}
    return "".join("?" if rating.score is None else str(rating.score) for rating in ratings)


@pytest.mark.parametrize(
    "raw",
    [
        '{"1": "4", "2": "0"}',
        '{"2": 0, "1": 4}',
        '{"1": 4.0, "2": "0."}',
        '[{"id": 1, "score": 4}, {"number": 2, "rating": "0"}]',
        '{"scores": [4, 0]}',
        '["4", "0"]',
        '```json\n{"1": 4, "2": 0}\n```',
        "<think>1: 5, 2: 5</think>1: 4\n2: 0",
        "1: 4\n2: 0",
        "1. 4/5\n2. 0/5",
        "**Text 1** - 4, nearly the same\n**Text 2** - 0 (other topics)",
        "Sentence 1: score 4\nSentence 2: score 0",
        "4, 0",
        "4\n0",
    ],
)
def test_scores_in_many_shapes(raw: str) -> None:
    assert read(raw) == "40"


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        ('{"1": "4"}', "4?"),
        ('{"1": "unsure", "2": 3}', "?3"),
        ('{"1": 6, "2": -1}', "??"),
        ('{"1": 3.5, "2": true}', "??"),
        ('{"1": 4, "1": 2, "2": 0}', "?0"),
        ('{"0": 4, "1": 0}', "??"),
        ("1: 4\n1: 3\n2: 0", "?0"),
        ("1: 3.5\n2: 0", "?0"),
        ("1: 4 or 5\n2: 0", "?0"),
        ("1: 42\n2: 0", "?0"),
        ("1: 4", "4?"),
        ("1 and 2 are alike", "??"),
        ("same, opposite", "??"),
        ("", "??"),
    ],
)
def test_what_is_no_score_or_two_is_unsure(raw: str, scores: str) -> None:
    assert read(raw) == scores


def test_the_number_of_a_line_is_no_list_of_one_score() -> None:
    assert read("[1] 4", 1) == "4"
    assert read("4", 1) == "4"


def test_the_end_of_an_answer_that_was_cut_off_is_not_read() -> None:
    assert read("1: 4\n2: 1", finish="length") == "4?"
    assert read('{"1": 4, "2": 1}', finish="content_filter") == "??"


@given(st.text(max_size=200))
def test_any_text_gives_scores_or_none(raw: str) -> None:
    assert len(read(raw, 3)) == 3


def test_hostile_answers_are_read_in_no_time() -> None:
    started = process_time()
    blanks, digits = "1" + " " * 20_000, "1: 4 " * 4000
    ends = ("4" + "\n" * 19_990 + "x", "4" + " \n" * 9990 + "x", "4\r\n" * 6600 + "x")
    for raw in (*ends, "1: " * 9000, "_" * 20_000, blanks, digits, "4," * 9000 + "x", "[" * 20_000):
        read(raw)
    assert process_time() - started < 5


def test_judges_are_compared_by_hand() -> None:
    cast = [
        [Rating("a", "x", 5), Rating("a", "y", 3), Rating("a", "z", None)],
        [Rating("b", "x", 0), Rating("b", "y", 0)],
        [Rating("c", "z", 2)],
    ]
    found = compare(cast)
    assert found.by_name == {
        "x": ScoreJudge(2, 0, 2.5, 1.0),
        "y": ScoreJudge(2, 0, 1.5, 1.0),
        "z": ScoreJudge(2, 1, 2.0, None),
    }
    assert found.compared == 2
    # said 5, 3, 0, 0: seen 2 * 4 = 8, expected 2 (2*9 + 2*25 + 4) = 144
    assert found.alpha_interval == pytest.approx(1 - 3 * 8 / 144)
    assert "0.83 (interval) over 2 pairs" in str(found.table())


PAIRS = [
    ("The pump leaks.", "Water runs out of the pump.", 1.0, (5, 4, 5)),
    ("The pump leaks.", "The pump is new.", 0.0, (2, 1, 2)),
    ("The pump leaks.", "Cats sleep a lot.", 1.0, (0, 0, 1)),  # the given label is wrong
    ("How do I log in?", "Where can I sign in?", 0.0, (5, 5, 4)),  # so is this one
    ("How do I log in?", "How do I log out?", 0.0, (5, 2, 0)),  # judges differ
]
ROWS = pl.DataFrame([pair[:3] for pair in PAIRS], schema=["text1", "text2", "label"], orient="row")


def judge_number(place: int) -> Any:
    def judge(prompt: str) -> str:
        data = json.loads(prompt[prompt.index('{"text"') :])
        known = {pair[:2]: pair[3][place] for pair in PAIRS}
        return json.dumps({number: known[data["text"], said] for number, said in data["sentences"].items()})

    return judge


def scored(out: Path, source: Any = ROWS, **more: Any) -> llm_labeler.JudgedPairs:
    llms = {name: judge_number(place) for place, name in enumerate("abc")}
    return llm_labeler.judge(source, **{"llms": llms, "out": out, "scale": "score", "progress": False} | more)


def test_scores_grade_pairs_and_contradict_labels(tmp_path: Path) -> None:
    found = scored(tmp_path / "out")
    rows = read_pairs(tmp_path / "out")["train"]
    assert rows["score"].to_list() == pytest.approx([14 / 3, 5 / 3, 1 / 3, 14 / 3])
    assert rows["label"].to_list() == pytest.approx([14 / 15, 5 / 15, 1 / 15, 14 / 15])
    assert rows["spread"].to_list() == [1, 1, 1, 1]
    assert rows["votes"][0].to_list() == [
        {"judge": name, "vote": score} for name, score in zip("abc", "545", strict=True)
    ]
    assert found.statistics["dropped"] == {"judges_differ": 1}
    assert found.statistics["contradictions"] == {"given_same": 1, "given_other": 1}
    counts = {"pairs": 4, "high": 2, "middle": 0, "low": 2, "mean_score": 2.833}
    assert found.statistics["splits"]["train"] == counts
    listed = pl.read_csv(found.contradictions)
    assert listed["text2"].to_list() == ["Cats sleep a lot.", "Where can I sign in?"]  # the farthest first
    assert listed["distance"].to_list() == pytest.approx([14 / 3, 14 / 3])
    assert "2 contradict the given label, 1 left out" in repr(found)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Krippendorff's alpha: ordinal" in card
    assert "from the others" in str(found.judges_table())
    assert "mean_score" in str(found.table())


def test_the_median_and_a_wider_spread_are_settings(tmp_path: Path) -> None:
    found = scored(tmp_path / "out", settings={"judge.score": "median", "judge.max_spread": 5})
    rows = read_pairs(tmp_path / "out")["train"]
    assert rows["score"].to_list() == [5, 2, 0, 5, 2]
    assert found.statistics["dropped"] == {}


def test_a_given_score_is_contradicted_from_afar(tmp_path: Path) -> None:
    graded = ROWS.with_columns(label=pl.Series([4.5, 0.0, 3.0, 3.0, 0.5]))  # of 0 to 4.5: 5, 0, 3.3, 3.3
    found = scored(tmp_path / "out", graded)
    listed = pl.read_csv(found.contradictions)
    assert listed["text2"].to_list() == ["Cats sleep a lot."]
    assert listed["distance"].to_list() == pytest.approx([3.0])
    assert scored(tmp_path / "near", graded, settings={"judge.far": 1.3}).contradicted == 3


def test_a_sources_own_columns_keep_their_content(tmp_path: Path) -> None:
    named = ROWS.with_columns(score=pl.lit(7), reason=pl.lit("same"), topic=pl.lit("x"))
    scored(tmp_path / "out", named)
    rows = read_pairs(tmp_path / "out")["train"]
    assert {*rows["source_score"]} == {7}
    assert {*rows["source_reason"]} == {"same"}
    assert {*rows["topic"]} == {"x"}


def test_words_and_scores_are_different_questions(tmp_path: Path) -> None:
    first = scored(tmp_path / "out")
    again = scored(tmp_path / "out")
    run = json.loads((tmp_path / "out" / "run.json").read_text())["settings"]
    assert {"scale", "score", "max_spread", "far"} < {*run["judge"]}
    with pytest.raises(ConfigError, match="with other settings"):
        scored(tmp_path / "out", settings={"judge.far": 1})
    assert (first.asked.cached, again.asked.cached, again.asked.spent.requests) == (0, 6, 0)
    with pytest.raises(DataError, match="decided on no pair"):
        scored(tmp_path / "words", work=tmp_path / "out.work", scale="words")
