"""The public functions of `llm_labeler`: arguments, results and errors."""

import asyncio
import json
import re
import threading

import polars as pl

import llm_labeler
import pairkit
from pairkit import Progress
from tests.contract.label_command import tree
from tests.support.shorthand import approx, config_error, parametrize, raises

TEXTS = [
    "The nurse takes a pill.",
    "A doctor drinks cold water.",
    "My aunt walks slowly at night.",
]


def counting(asked):
    def mine(prompt):
        asked.append(prompt)
        sentence = json.loads(prompt.rpartition("Sentence: ")[2])
        if "say the opposite" in prompt:
            return f"1. It is wrong that {sentence}\n2. Nobody says that {sentence}"
        return f"1. In other words, {sentence}\n2. Put differently, {sentence}"

    return mine


def generate(source, out, asked=None, **more):
    arguments = {"llm": counting([] if asked is None else asked), **more}
    return llm_labeler.generate(source, out=out, **arguments)


def test_generate_works_in_a_running_event_loop(out):
    async def later(prompt):
        await asyncio.sleep(0)
        return counting([])(prompt)

    async def cell():
        return generate(TEXTS, out, llm=later)

    result = asyncio.run(cell())
    assert result.positives == 6
    assert result.pairs.splits["train"]["llms"].explode().unique().to_list() == [
        "later"
    ]


def test_results_and_reports(tmp_path, out, caplog):
    result = generate(TEXTS, out)
    assert repr(result).startswith(
        f"Labelled('{tmp_path}/out': 6 positive and 6 negative pairs of 3 texts"
    )
    assert "<table>" in result._repr_html_()
    assert result.pairs is result.pairs
    assert [step[:2] for _, step in result.next_steps()] == [["aoe", "train"]]
    assert generate(TEXTS, tmp_path / "n", polarity="negative").next_steps() == []
    assert result.pairs.splits["train"].equals(pairkit.read(out).splits["train"])
    with raises(AttributeError):
        result.out = tmp_path
    report = llm_labeler.report(result.work)
    assert (report.llms["mine"].proposals, report.llms["mine"].pairs) == (12, 12)
    assert "mine" in repr(report)
    sentence = llm_labeler.show("row:2", work=result.work)
    assert TEXTS[1] in repr(sentence)
    assert "[kept] In other words" in repr(sentence)
    gold = result.pairs.splits["train"].select("text1", "text2", "label")
    score = llm_labeler.evaluate(gold, work=result.work)
    assert {row.precision for row in score.rows if row.name == "union"} == {1.0}
    assert "union" in repr(score)
    assert "positive" in score._repr_html_()

    words = [*gold.iter_rows(), ("a", "b", "unsure")]
    again = llm_labeler.evaluate(
        [
            {
                "first": first,
                "second": second,
                "says": {1: "same", 0: "not"}.get(label, label),
            }
            for first, second, label in words
        ],
        work=result.work,
        columns={"text1": "first", "text2": "second", "label": "says"},
        labels={"same": 1, "not": 0, "unsure": "skip"},
    )
    assert again.rows == score.rows
    assert "rows left out: 1 unsure" in repr(again)
    unread = {"text1": "a", "text2": "b", "label": None}
    some = llm_labeler.evaluate([*gold.to_dicts(), unread], work=result.work)
    assert some.rows == score.rows
    assert "rows left out: empty label in 1" in caplog.messages[-1]
    percent = gold.with_columns(label=pl.col("label") * 60 + 20)
    found = llm_labeler.evaluate(percent, work=result.work, label_range=(0, 100))
    assert found.threshold == approx(0.5)


def test_the_report_says_what_a_drop_reason_means(tmp_path):
    text, reply = (
        "A man plays the guitar.",
        "1. A man plays the guitar.\n2. A man is playing guitar.",
    )
    how = {"llm": {"me": lambda _: reply}, "polarity": "positive"}
    result = llm_labeler.generate([text, text], out=tmp_path / "o", **how)
    report = repr(llm_labeler.report(result.work))
    assert re.search(r"echo +1 +a repetition of the prompt", report)
    assert re.search(r"repeated +1$", report, re.MULTILINE)  # a row, not a proposal


def test_run_json_has_the_qualified_name_of_a_function(tmp_path, out):
    result = generate(TEXTS, out, llm={"first": counting([])})
    run = json.loads((out / "run.json").read_text())
    assert run["llms"]["first"]["kind"] == "function"
    assert run["llms"]["first"]["model"] == f"python:{__name__}.counting.<locals>.mine"
    again = llm_labeler.parse(result.work, out=tmp_path / "again")
    assert tree(again.out) == tree(result.out)
    with config_error("no pair could result"):
        llm_labeler.parse(result.work, out=tmp_path / "voted", aggregation="vote")


def test_progress_goes_to_a_function_and_nothing_to_the_terminal(out, capsys):
    seen = []
    result = generate(TEXTS, out, judges="chatgpt", progress=seen.append)
    assert {at.stage for at in seen} == {"proposing", "making pairs"}
    assert seen[-1] == Progress("making pairs", 3, 3, ended=True)
    assert "the sentences may leave this machine: mine" in result.messages
    assert any("chatgpt won't judge" in line for line in result.messages)
    assert capsys.readouterr() == ("", "")


def test_the_error_on_unknown_prices_has_a_working_remedy(out):
    asked = []
    with config_error("price of mine is unknown") as caught:
        generate(TEXTS, out, asked, max_cost=5)
    assert asked == []
    entries = re.findall(
        r"settings='(.*?)'", str(caught.value).replace("=X", "=10").replace("=Y", "=20")
    )
    assert len(entries) == 2
    assert 0 < (generate(TEXTS, out, max_cost=5, settings=entries).cost or 0) < 5
    assert re.search(
        r"0 tokens, cost \$0 \(\$0\.\d+ in all",
        repr(generate(TEXTS, out, settings=entries)),
    )


LATER = f"python:{__name__}.answer_later"


def answer(prompt):
    return prompt


async def answer_later(prompt):
    return prompt


class Answering:
    async def __call__(self, prompt):
        return prompt


@parametrize(
    "llms, models",
    [
        ("chatgpt, llama", {"chatgpt": "gpt-4o-mini", "llama": "meta-llama/Llama-3.1-8B-Instruct"}),
        (answer, {"answer": f"python:{__name__}.answer"}),
        (["llama", answer_later], {"llama": "meta-llama/Llama-3.1-8B-Instruct", "answer_later": LATER}),
        (Answering(), {"Answering": f"python:{__name__}.Answering"}),
        ({"one": answer, "two": answer}, dict.fromkeys(("one", "two"), f"python:{__name__}.answer")),
        ({"one": {"kind": "wordnet"}}, {"one": "wordnet rules"}),
    ],
)  # fmt: skip
def test_llms_by_name_function_and_entry(llms, models):
    names = ",".join(models)
    plan = llm_labeler.plan(TEXTS, llm=llms, judges=names)
    assert {estimate.llm: estimate.model for estimate in plan.estimates} == models
    ensemble = llm_labeler.plan(TEXTS, llm="ensemble").estimates
    assert [estimate.llm for estimate in ensemble] == ["chatgpt", "llama", "chatglm"]


def test_plain_functions_are_called_one_after_another_unless_configured(tmp_path):
    running, together = set[int](), threading.Barrier(3)

    def alone(prompt):
        assert not running
        running.add(threading.get_ident())
        running.remove(threading.get_ident())
        return counting([])(prompt)

    def in_threes(prompt):
        together.wait(60)
        return counting([])(prompt)

    assert generate(TEXTS, tmp_path / "one", llm=alone).positives == 6
    three = generate(
        TEXTS,
        tmp_path / "three",
        llm=in_threes,
        settings=["llm.in_threes.concurrency=3"],
    )
    assert three.positives == 6


def test_llms_of_the_settings(out):
    settings = {"llms": "wordnet"}
    made = llm_labeler.generate(["The light is red."], out=out, settings=settings)
    assert [*made.statistics["llms"]] == ["wordnet"]
    with config_error("no LLM is named; give llm="):
        llm_labeler.generate(["The light is red."], out=out)


QUIET = {"llm": "wordnet"}
ARGUMENTS = [
    ({"llm": lambda prompt: prompt}, "'<lambda>' is not a name; .* llm={'mine': …}"),
    ({"llm": [answer, answer]}, "two LLMs are called answer"),
    ({"llm": answer, "judges": {"answer": str}}, "two LLMs are called answer"),
    ({"llm": "chatgpt", "judges": {"chatgpt": answer}}, "two LLMs are called chatgpt"),
    ({"llm": "ensemble", "judges": {"llama": answer}}, "two LLMs are called llama"),
    (
        {"llm": answer, "settings": ["llm.answer.kind=openai"]},
        "two LLMs are called answer",
    ),
    ({"llm": [3]}, "'int' is int; expected a function"),
    ({"llm": {"a b": answer}}, "'a b' is not a name"),
    ({"llm": "a,,b"}, "expected NAME or NAME,NAME"),
    ({"polarity": "up"}, "expected positive, negative or both"),
    ({"aggregation": answer}, "aggregation"),
    ({"aggregation": "best"}, "expected 'union', 'vote' or 'weighted'"),
    ({"out": None}, "^out = None: "),
    ({"work": 5}, "^work = 5: "),
    ({"settings": 5}, "^settings = 5: "),
]


@parametrize(
    "call, message",
    [
        *(
            (lambda given=given: llm_labeler.generate(TEXTS, **QUIET | given), message)
            for given, message in ARGUMENTS
        ),
        (lambda: llm_labeler.plan(TEXTS, llm=answer, out=None), "^out = None: "),
        (lambda: llm_labeler.parse(None), "^work = None: "),
        (lambda: llm_labeler.report(None), "^work = None: "),
        (lambda: llm_labeler.show(5, work="work"), "^sentence = 5: "),
        (
            lambda: llm_labeler.evaluate([], work="work", gold_threshold="x"),
            "^gold_threshold = 'x': ",
        ),
    ],
)
def test_a_wrong_argument_is_named_in_one_line(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with config_error(message) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert not [*tmp_path.iterdir()]
