"""Warnings about the quality of a run's pairs, in its result, statistics and card."""

import json

import llm_labeler
from tests.support.llm import reply
from tests.support.shorthand import parametrize

from .llm_server import answering, entry
from .stored_answers import text_of

QUESTIONS = [f"Which of the {number} doors is open?" for number in range(4)]
SPENT = {"message": {"content": ""}, "finish_reason": "length"}
GOOD = {
    "message": {"content": "1. Is one of these doors open?"},
    "finish_reason": "stop",
}


def warnings(out, answers, **options):
    """The warnings of a run with these answers by text, with a second LLM whose sentences are fine."""

    def fine(prompt):
        return f"1. {text_of(prompt).replace('Which', 'So which')}"

    given = {"polarity": "positive", **options}
    llms = {"ann": lambda prompt: answers[text_of(prompt)], "fine": fine}
    result = llm_labeler.generate([*answers], llm=llms, out=out, **given)
    report = llm_labeler.report(result.work)
    assert not any(" --" in warning for warning in report.warnings)
    card = (result.out / "README.md").read_text()
    found = result.statistics["warnings"]
    assert all(f"* **Warning.** {warning}." in card for warning in found)
    noted = [line for line in result.messages if line.startswith("warning: ")]
    assert len(noted) == len(found)
    return found


def answered(*answers):
    return dict(zip(QUESTIONS, answers, strict=False))


def negatives(old, new, number):
    return {text: f"1. {text.replace(old, new)}" for text in QUESTIONS[:number]}


IS_OPEN = "1. The door to the garden is."
ASKS = "1. Is one of these doors open?"
UNLIKE = "1. Do cats sleep?"


@parametrize(
    "answers, polarity, expected",
    [
        (answered(IS_OPEN, IS_OPEN, IS_OPEN, ASKS), "positive", "ann: 3 of 4 sentences have little to do"),
        (answered(UNLIKE, UNLIKE, UNLIKE), "positive", "ann: 3 of 3 sentences have little to do"),
        (answered(IS_OPEN, IS_OPEN, ASKS, ASKS), "positive", ""),  # two
        (answered(IS_OPEN, IS_OPEN, "", ASKS), "positive", ""),
        (answered("", "[]", '{"sentences": []}', ASKS), "positive", "ann: 3 of 4 answers have no sentence;"),
        (answered("", "", ASKS, ASKS), "positive", ""),
        (negatives("open", "open today", 3), "negative", "ann: 3 of 3 negatives repeat their texts (echo, "),
        (negatives("open", "open", 3), "negative", "ann: 3 of 3 negatives repeat their texts (echo, "),
        (negatives("open", "open today", 2), "negative", ""),
        (negatives("open", "closed", 3), "negative", ""),
    ],
)  # fmt: skip
def test_warnings_by_llm(answers, polarity, expected, out):
    found = warnings(out, answers, polarity=polarity)
    lines = [line for line in found if line.startswith("ann")]
    assert [line[: len(expected)] for line in lines] == ([expected] if expected else [])
    assert not lines or "label show" in lines[0]


def test_rules_without_positives(tmp_path):
    llms = {
        "fine": lambda prompt: f"1. Nun, {text_of(prompt)}",
        "wordnet": {"kind": "wordnet"},
    }
    texts = [
        "Der Bildschirm wird schwarz.",
        "Wie kann ich bezahlen?",
        "Das Fenster klemmt.",
    ]
    out = tmp_path / "out"
    result = llm_labeler.generate(texts, llm=llms, out=out, polarity="positive")
    assert [line.partition(";")[0] for line in result.statistics["warnings"]] == [
        "wordnet: no positives"
    ]


@parametrize("spent, is_warned", [(3, True), (2, False)])
def test_answers_that_reach_the_token_limit_before_they_begin(spent, is_warned, out):
    def respond(body):
        number = QUESTIONS.index(text_of(body["messages"][-1]["content"]))
        return reply(
            200,
            json.dumps({"choices": [SPENT if number < spent else GOOD], "model": "m"}),
        )

    with answering(respond) as server:
        llm = entry(server.base_url)
        result = llm_labeler.generate(
            QUESTIONS, llm={"ann": llm}, out=out, polarity="positive"
        )
    lines = [
        line
        for line in result.statistics["warnings"]
        if "reached the token limit" in line
    ]
    assert len(lines) == is_warned
    assert all(line.startswith("ann: 3 of 4 answers") for line in lines)
    assert all("llm.ann.max_tokens" in line for line in lines)
