"""`judge`: questions, labels and contradictions of existing pairs."""

import json
import re

import polars as pl
import pytest

import llm_labeler
import pairkit
from llm_labeler import CallFailed
from tests.support.llm import Faults, Options, serve
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    pair_table,
    parametrize,
    remote_error,
    table,
    values,
)

from .llm_server import entry

PAIRS = values("""
    The pump leaks. | Water runs out of the pump. | 1 | same
    The pump leaks. | The pump is new. | 0 | related
    # wrong label
    The pump leaks. | Cats sleep a lot. | 1 | different
    # wrong label
    How do I log in? | Where can I sign in? | 0 | same
    How do I log in? | How do I log out? | 0 | related
    How do I log in? | Which way is north? | 0 | undecided
""")
TRUTH = {(one, other): word for one, other, _, word in PAIRS}
ROWS = pair_table([pair[:3] for pair in PAIRS])


def judge_of(undecided, seen=None):
    """A judge that knows the truth, and answers `undecided` if there is none."""

    def judge(prompt):
        if seen is not None:
            seen.append(prompt)
        data = json.loads(prompt[prompt.index('{"text"') :])
        words = {
            number: TRUTH[data["text"], sentence].replace("undecided", undecided)
            for number, sentence in data["sentences"].items()
        }
        return json.dumps(words)

    return judge


def judged(out, source=ROWS, **changes):
    llms = {
        name: judge_of(word)
        for name, word in zip("abc", ("same", "related", "different"), strict=True)
    }
    return llm_labeler.judge(source, **{"llm": llms, "out": out} | changes)


def test_decided_pairs_get_labels_and_others_are_counted(out):
    result = judged(out)
    rows = pairkit.read(out)["train"]
    decided = {(row["text1"], row["text2"]): row for row in rows.iter_rows(named=True)}
    assert {key: row["judged"] for key, row in decided.items()} == {
        key: word for key, word in TRUTH.items() if word != "undecided"
    }
    assert all(row["label"] == (row["judged"] == "same") for row in decided.values())
    assert decided["The pump leaks.", "Cats sleep a lot."]["given_label"] == 1
    assert decided["The pump leaks.", "The pump is new."]["votes"] == [
        {"judge": name, "vote": "related"} for name in "abc"
    ]
    assert all((row["probability"] > 0.5) == row["label"] for row in decided.values())
    assert all(
        row["probability"] == row["confidence"]
        for row in decided.values()
        if row["judged"] == "same"
    )
    assert result.statistics["dropped"] == {"undecided": 1}
    assert result.statistics["splits"]["train"] == {
        "pairs": 5,
        "different": 1,
        "related": 2,
        "same": 2,
    }
    assert "5 pairs; 2 labels contradicted, 1 pairs left out" in repr(result)


def test_contradicted_labels_are_listed(out):
    result = judged(out)
    assert result.statistics["contradictions"] == {"given_same": 1, "given_other": 1}
    listed = pl.read_csv(result.contradictions)
    assert {
        (row["text2"], row["given_label"], row["judged"])
        for row in listed.iter_rows(named=True)
    } == {("Cats sleep a lot.", 1, "different"), ("Where can I sign in?", 0, "same")}
    assert listed["votes"][0].startswith("a: ")
    assert pl.read_parquet(result.work / "judged.parquet").height == len(PAIRS)


def test_judges_see_no_labels_and_no_other_votes(tmp_path):
    seen = []
    swapped = ROWS.with_columns(label=1 - pl.col("label"))
    for name, rows in (("one", ROWS), ("two", swapped)):
        judge, sure = {"a": judge_of("same", seen)}, {"ensemble.min_confidence": 0}
        judged(tmp_path / name, rows, llm=judge, settings=sure)
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert all(
        not re.search(r"label|given|positive", prompt[prompt.index('{"text"') :])
        for prompt in seen
    )
    assert "opposite of" not in seen[0]


@each_line("""
    purpose, same
    match | one could stand for the other
    search | one answers the other
    group | they belong to the same topic, or have the same intent
""")
def test_what_counts_as_the_same_follows_the_purpose(purpose, same, out):
    seen = []
    wanted = {"judge.purpose": purpose, "ensemble.min_confidence": 0}
    judged(out, llm={"a": judge_of("same", seen)}, settings=wanted)
    assert all(same in prompt for prompt in seen)
    assert same in json.loads((out / "run.json").read_text())["prompts"]["system"]


def test_splits_and_columns_are_kept_and_repeats_dropped(tmp_path, out):
    source = tmp_path / "pairs"
    source.mkdir()
    older = pl.lit("older").alias("source_votes")
    rows = ROWS.with_columns(older, votes=pl.lit("old"), topic=pl.lit("x"))
    pl.concat([rows, rows.head(1)]).write_parquet(source / "train.parquet")
    rows.head(2).write_parquet(source / "test.parquet")
    result = judged(out, source)
    dataset = pairkit.read(out)
    assert {split: frame.height for split, frame in dataset.splits.items()} == {
        "train": 5,
        "test": 2,
    }
    kept = {"source_votes", "source_source_votes", "topic", "given_label"}
    assert kept <= {*dataset["train"].columns}
    assert result.statistics["dropped"] == {"repeated": 1, "undecided": 1}


def test_graded_labels_from_half_on_mean_the_same(out):
    graded = ROWS.with_columns(label=pl.Series([4.5, 1.0, 0.5, 1.0, 2.4, 0.0]))
    result = judged(out, graded)
    assert result.statistics["contradictions"] == {"given_same": 0, "given_other": 1}


def test_a_single_judge_has_no_accuracy(tmp_path, out):
    result = judged(out, llm={"a": judge_of("same")})
    assert re.search(r"\ba +6 +0 +-\s", str(result.tables()[0]))
    assert re.search(r"`a` \| .* \| - \|", (out / "README.md").read_text())
    assert re.search(r"0\.\d\d", str(judged(tmp_path / "all").tables()[0]))


def test_failures_are_reported_as_a_problem(tmp_path, out):
    def down(_):
        raise CallFailed("rejected", "<html>Login", retry=False)

    llms = {"a": judge_of("same"), "down": down}
    with remote_error(r"no answer to 2 questions \(rejected 2: <html>Login\)"):
        judged(out, llm=llms)
    with remote_error(r"Login\); check the server and its \[llm.NAME\], then run"):
        judged(tmp_path / "none", llm={"down": down})
    result = judged(out, llm=llms, keep_going=True)
    assert result.problem is not None
    assert result.problem.exit_code == 4
    assert judged(tmp_path / "whole").problem is None


@parametrize("kind", ["filtered", "events", "invalid_json", "refused_format"])
@pytest.mark.usefixtures("short_waits")
def test_judges_on_unusual_servers(kind, out):
    options = Options(
        format_error="Input validation error" if kind == "refused_format" else ""
    )
    faults = Faults(0.0 if options.format_error else 0.5, (kind,))
    with serve(options, faults) as server:
        judges = {
            "llm": {"a": entry(server.base_url)},
            "settings": {"judge.candidates_per_call": 1},
        }
        result = judged(out, **judges)
        assert result.asked.spent.requests == server.stats.requests
        calls = server.stats.requests
        assert judged(out, **judges).asked.spent.requests == 0
        assert server.stats.requests == calls
    filtered = server.stats.faults["filtered"]
    assert result.statistics["dropped"] == ({"unsure": filtered} if filtered else {})


@parametrize("kind, ending", [("refusal", "refused"), ("filtered", "filtered")])
def test_without_votes_the_error_counts_how_answers_ended(kind, ending, out):
    says = rf"undecided \(.*; answers: {ending} \d+\); raise max_tokens"
    with serve(faults=Faults(1.0, (kind,))) as server, data_error(says):
        judged(out, llm={"a": entry(server.base_url)})


@table("""
    changes, message
    {'llm': 'wordnet'} | wordnet is a set of rules, which can't judge
    {'settings': {'task': 'judge'}} | to judge existing pairs, run `label judge`
""")
def test_rules_and_other_tasks_can_not_judge(out, changes, message):
    with config_error(message):
        judged(out, **changes)


def test_pairs_beyond_the_length_limits_are_dropped(tmp_path):
    long = ("The pump leaks.", "x" * 3000, 1)
    rows = pl.concat([ROWS, pl.DataFrame([long], schema=ROWS.columns, orient="row")])
    result = judged(tmp_path / "out", rows)
    assert result.statistics["dropped"] == {"too_long": 1, "undecided": 1}
    with data_error(r"no pairs to judge \(too_short 6\W.* \[input\]"):
        judged(tmp_path / "none", settings={"input.min_chars": 100})


def test_a_sample_depends_on_seed_and_content(tmp_path):
    def drawn(name, rows, seed):
        result = judged(tmp_path / name, rows, draw=2, seed=seed)
        return {
            *pl.read_parquet(result.work / "judged.parquet")
            .select("text1", "text2")
            .iter_rows()
        }

    first = drawn("first", ROWS, 1)
    assert len(first) == 2
    assert drawn("reversed", ROWS.reverse(), 1) == first
    assert any(drawn(str(seed), ROWS, seed) != first for seed in (2, 3, 4))


def test_the_limit_counts_usable_pairs(out):
    result = judged(out, limit=2, settings={"input.max_chars": 24})
    # Nothing after the second usable pair.
    assert result.statistics["dropped"] == {"too_long": 1}
    texts = pairkit.read(out)["train"]["text2"].to_list()
    assert texts == ["The pump is new.", "Cats sleep a lot."]
