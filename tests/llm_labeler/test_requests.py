"""Requests to servers: their fields, and other forms after refusals."""

import json

import pytest

import llm_labeler
from tests.support.llm import Faults, Options, reply, serve
from tests.support.shorthand import (
    config_error,
    each_line,
    parametrize,
    remote_error,
    table,
    values,
)

from .llm_server import answering, entry

PLANE = "A plane is here."
LONG = f"A {'very ' * 150}long story."
CHANGES = ["negation", "antonym", "entity", "number", "role", "tense", "modality"]


def asked(server, out, texts=(PLANE,), options=(), **fields):
    """A positive question about each text."""
    named = [
        f"Patient {text} is fine." if isinstance(text, int) else text for text in texts
    ]
    given = {"polarity": "positive", "keep_going": True, "fresh": True, **dict(options)}
    return llm_labeler.generate(
        named, llm={"llama": entry(server.base_url, **fields)}, out=out, **given
    )


def sent(server):
    return [
        json.loads(request.body)
        for request in server.requests
        if request.method == "POST"
    ]


def formats(server):
    return ["response_format" in body for body in sent(server)]


def test_the_fields_of_a_request(out):
    with serve() as server:
        chosen = {"temperature": 0.2, "top_p": 0.9, "seed": 7, "extra": {"min_p": 0.1}}
        asked(
            server, out, options={"prompt": "paper", "samples": 2, "size": 2}, **chosen
        )
        bodies = sent(server)
    prompt = (
        "You are a highly smart same-meaning sentence-generating system. Your job is to generate 2 "
        f"synonymous sentences of a given input sentence. Input sentence: {PLANE}. Output:"
    )
    expected = {
        "model": "emulated",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 512,
    }
    expected |= {"temperature": 0.2, "top_p": 0.9, "min_p": 0.1, "stream": False}
    assert sorted(bodies, key=lambda body: body["seed"]) == [
        {**expected, "seed": seed} for seed in (7, 8)
    ]


def objects(**properties):
    """The schema of objects with just these keys."""
    required = {"required": [*properties], "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


def format_of(item):
    """The requested format of a list."""
    schema = objects(sentences={"type": "array", "items": item})
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


LABELLED = objects(
    kind={"type": "string", "enum": CHANGES}, sentence={"type": "string"}
)
STRINGS, OBJECT = format_of({"type": "string"}), {"type": "json_object"}
OFF, ON = {"type": "disabled"}, {"type": "enabled"}


@parametrize(
    "fields, task, formats, others",
    [
        ({}, "paraphrase", [STRINGS, STRINGS], {"max_tokens": 512}),
        ({}, "triplet", [STRINGS, format_of(LABELLED)], {"max_tokens": 512}),
        ({"kind": "openai"}, "query", [STRINGS, STRINGS], {"max_completion_tokens": 512}),
        ({"structured": "off"}, "paraphrase", [None, None], {"max_tokens": 512}),
        ({"kind": "glm"}, "paraphrase", [OBJECT, OBJECT], {"max_tokens": 512, "thinking": OFF}),
        ({"kind": "glm", "extra": {"thinking": ON}}, "paraphrase", [OBJECT, OBJECT],
         {"max_tokens": 512, "thinking": ON}),
    ],
)  # fmt: skip
def test_requests_differ_by_kind_and_task(fields, task, formats, others, out):
    with serve() as server:
        asked(
            server,
            out,
            options={"task": task, "polarity": "both"},
            concurrency=1,
            **fields,
        )
        bodies = sent(server)
    assert [body.pop("response_format", None) for body in bodies] == formats
    plain = {"model": "emulated", "stream": False, **others}
    assert [
        {name: body[name] for name in body.keys() - {"messages"}} for body in bodies
    ] == [
        plain,
        plain,
    ]


@parametrize("prompt", ["paper", "Write {size} {polarity} sentences. Input: {text}."])
@parametrize("structured, has_format", [("auto", False), ("strict", True)])
def test_the_papers_prompt_and_prompts_without_json(
    prompt, structured, has_format, tmp_path
):
    if prompt != "paper":
        own = tmp_path / "own.txt"
        own.write_text(prompt)
        prompt = str(own)
    with serve() as server:
        # GLM needs a description of the JSON in the prompt.
        options = {"prompt": prompt}
        asked(
            server, tmp_path / "out", options=options, kind="glm", structured=structured
        )
        assert formats(server) == [has_format]


def test_refused_fields_are_not_sent_again(out):
    refuses = frozenset(("response_format", "max_completion_tokens"))
    with serve(Options(refuses=refuses)) as server:
        result = asked(server, out, range(40), kind="openai")
        assert result.asked.unanswered == {}
        assert server.stats.answered == server.stats.requests == 40
        # only the first 16 concurrent calls may meet both refusals
        assert len(sent(server)) <= 40 + 2 * 16
        assert sent(server)[-1].keys() == {"model", "messages", "max_tokens", "stream"}


@table("""
    status, message, refusals
    400 | System role not supported | 1
    400 | Developer instruction is not enabled for models/gemma-3-27b-it | 1
    400 | System messages are not supported | 1
    400 | Unsupported value: 'messages[0].role' does not support 'system' with this model. | 1
    422 | Only user, assistant and tool roles are supported, got system | 1
    500 | Conversation roles must alternate user/assistant/user/assistant/... | 1
    # the first one may be about the format
    400 | Request contains an invalid argument. | 2
""")
def test_a_refused_system_message_becomes_a_part_of_the_question(
    status, message, refusals, out
):
    def respond(body):
        refuses = body["messages"][0]["role"] == "system"
        return reply(status, json.dumps({"message": message})) if refuses else None

    with answering(respond) as server:
        result = asked(server, out, range(9), concurrency=1)
        assert (result.asked.unanswered, result.asked.spent.requests) == ({}, 9)
        bodies = sent(server)
        assert formats(server)[-1]
        assert asked(server, out, range(12), concurrency=1).asked.unanswered == {}
        assert len(sent(server)) == len(bodies) + 3
    refused, merged = bodies[:refusals], bodies[refusals:]
    instructions = refused[0]["messages"][0]["content"]
    texts = [message["content"] for body in merged for message in body["messages"]]
    assert [text.startswith(f"{instructions}\n\nWrite 3 ") for text in texts] == [
        True
    ] * 9


@pytest.mark.usefixtures("short_waits")
@parametrize(
    "texts, has_format, attempts",
    [
        ([LONG, 1, 2], [True, False, False, True, True], 1),
        ([1, 2, LONG, 3], [True, True, True, True, True, False], 3),
    ],
    ids=[
        "at first: each form once",
        "after answers in the format: it is about the question",
    ],
)
def test_a_question_that_every_form_is_refused_of(texts, has_format, attempts, out):
    with serve(
        Options(context_chars=1000, context_error=("Bad request.", ""))
    ) as server:
        result = asked(server, out, texts, concurrency=1)
        assert result.asked.unanswered == {"rejected": 1}
        assert formats(server) == has_format
        (failure,) = llm_labeler.show(LONG, work=result.work).failures
        assert failure.attempts == attempts


def test_a_refused_strict_format_is_reported(out):
    options = Options(refuses=frozenset(["response_format"]))
    says = r'support json_schema .*structured = "auto" in \[llm'
    with serve(options) as server, config_error(says):
        asked(server, out, options={"keep_going": False}, structured="strict")


@each_line("""
    message, says
    Invalid JSON payload received. Unknown name "seed": Cannot find field. | the value of seed
    [{'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}] | the value of seed
    Argument not supported on this model: seed | the value of seed
    invalid seed: only 1 is allowed for this model | the value of seed
    `seed` is deprecated for this model. | the value of seed
    seed: value should be in range [0, 10] | the value of seed
    `seed` and `top_p` cannot both be specified for this model. | the value of seed or top_p
    Argument not supported on this model: topP | the value of top_p
    No endpoints found that can handle the requested parameters. | the value of seed or top_p
    max_tokens is too large: 512; at most 100 completion tokens are supported | lower max_tokens in
""")
def test_a_setting_that_is_named_only_in_the_message(message, says, out):
    refused = json.dumps({"error": {"message": message}})
    refusing = answering(lambda _: reply(400, refused))
    with refusing as server, config_error(rf"{says} .*\[llm.llama\]"):
        asked(server, out, options={"keep_going": False}, seed=3, top_p=0.5)


def test_settings_that_affect_answers_make_other_questions(tmp_path):
    def missing(url="", **fields):
        llm = {"llama": entry(url or server.base_url, **fields)}
        work = tmp_path / "out.work"
        return (
            llm_labeler.plan([PLANE], llm=llm, polarity="positive", work=work)
            .estimates[0]
            .missing
        )

    with serve() as server:
        asked(server, tmp_path / "out")
        same = values("""
            concurrency | 3
            rpm | 5
            timeout_s | 1.0
            price_in | 1.0
            attempts | 2
        """)
        assert missing(**dict(same), url=f"{server.base_url}/") == 0
        changes = values("""
            kind | openai
            model | b
            temperature | 0.5
            top_p | 0.5
            seed | 1
            max_tokens | 9
            structured | off
            extra | {"min_p": 0.1}
            url | http://localhost:2/v1
        """)
        assert [missing(**{name: value}) for name, value in changes] == [1] * 9


def test_the_bound_counts_bytes_and_the_schema(out):
    def at_most(text, **fields):
        llm = {"llama": entry("http://localhost:1/v1", max_tokens=9, **fields)}
        plan = llm_labeler.plan([text], llm=llm, polarity="positive", out=out)
        return plan.estimates[0].at_most

    assert at_most("é" * 101) - at_most("é") == 200
    assert at_most("é") > at_most("é", structured="off") + 50


# Formats that are refused or broken


@table("""
    status, words
    # Fireworks
    400 | JSON Schema not supported: could not understand the instance `{'type': 'object'}`.
    # Gemini
    400 | Request contains an invalid argument.
    400 | Invalid JSON payload received. Unknown name "additionalProperties": Cannot find field.
    # Together
    422 | Input validation error
    400 | We could not make sense of your request.
    400 | response_format: json_schema is not available
    # OpenRouter
    404 | No endpoints found that can handle the requested parameters.
    # llama.cpp
    500 | Failed to initialize samplers: failed to parse grammar
    501 | structured output is not implemented
""")
def test_a_refused_format_is_left_out_and_remembered(status, words, out):
    with serve(Options(format_error=words, format_status=status)) as server:
        result = asked(server, out, range(24), concurrency=4, attempts=1)
        assert (result.asked.unanswered, result.asked.spent.requests) == ({}, 24)
        first = formats(server)
        assert 1 <= sum(first) <= 4  # of the first concurrent calls
        again = asked(server, out, range(30), concurrency=4, attempts=1)
        assert (again.asked.cached, again.asked.spent.requests) == (24, 6)
        assert not any(formats(server)[len(first) :])


@pytest.mark.usefixtures("short_waits")
@parametrize("share", [0.66, 1.0])
def test_answers_that_break_the_format_are_asked_again_and_then_without_it(share, out):
    with serve(faults=Faults(share, ("invalid_json",))) as server:
        result = asked(server, out, range(24), structured="auto")
        assert (result.asked.unanswered, server.stats.answered) == ({}, 24)
        assert max(server.stats.asked.values()) == 3
        shown = [
            llm_labeler.show(f"row:{row}", work=result.work).answers[0]
            for row in range(1, 25)
        ]
        is_json = [answer.reply.raw.startswith("{") for answer in shown]
        assert any(is_json) == (share < 1)
        assert not all(is_json)
        before = len(formats(server))
        asked(server, out, range(25), structured="auto")
        assert formats(server)[before]  # other questions are asked in the format


@pytest.mark.usefixtures("short_waits")
def test_a_strict_format_is_never_left_out(tmp_path):
    with serve(faults=Faults(0.5, ("invalid_json",))) as server:
        result = asked(
            server, tmp_path / "out", range(24), structured="strict", attempts=30
        )
        assert result.asked.unanswered == {}
        assert all(formats(server))
    with (
        serve(faults=Faults(1.0, ("invalid_json",))) as server,
        remote_error(r"50 of the last 50 calls failed, .*Failed to generate JSON"),
    ):
        asked(
            server,
            tmp_path / "other",
            range(24),
            {"keep_going": False},
            structured="strict",
        )


@pytest.mark.usefixtures("short_waits")
def test_empty_answers_are_asked_again_and_paid(tmp_path):
    with serve(faults=Faults(0.5, ("empty",))) as server:
        result = asked(server, tmp_path / "out", range(24), attempts=20)
        assert (result.asked.unanswered, result.dropped) == ({}, {})
        spent = result.asked.spent
        assert (spent.requests, spent.estimated) == (
            24 + server.stats.faults["empty"],
            0,
        )
    with serve(faults=Faults(0.5, ("empty",), first=1)) as server:
        result = asked(server, tmp_path / "other", range(24), attempts=1)
        assert result.asked.unanswered == {"empty_answer": server.stats.faults["empty"]}
        assert asked(server, tmp_path / "other", range(24)).asked.unanswered == {}


def test_filtered_answers_are_stored_and_not_asked_again(out):
    with serve(faults=Faults(0.5, ("filtered",))) as server:
        result = asked(server, out, range(24))
        assert (result.asked.unanswered, server.stats.requests) == ({}, 24)
        assert asked(server, out, range(24)).asked.cached == 24
        assert server.stats.requests == 24
        assert result.dropped == {"filtered": server.stats.faults["filtered"]}
