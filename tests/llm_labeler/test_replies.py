"""Responses of servers: one run gets the response of each case to a text of its own."""

import json
from functools import cache

import llm_labeler
from tests.support.llm import reply
from tests.support.shorthand import (
    module_fixture,
    parametrize,
    raises,
    table,
    text_table,
)

from .llm_server import answering, entry

USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
NESTED = "a"
for _ in range(20):
    NESTED = [{"text": NESTED}]


def completion(message, finish="stop", **fields):
    return {
        "model": "m-1",
        "choices": [{"message": message, "finish_reason": finish}],
        **fields,
    }


def events(*words):
    """A stream that breaks off."""
    parts = [
        {"model": "m-1", "choices": [{"delta": {"content": word}}]} for word in words
    ]
    data = [*parts, {"choices": [None], "id": 1}]
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in data).encode()


WHOLE, DONE = (
    json.dumps(completion({"content": "1. a"})).encode(),
    b"\r\n\r\ndata: [DONE]\r\n\r\n",
)
FILTERED = {"content_filter_results": {"hate": {"filtered": True}}}
ARGUMENTS = {"function": {"name": "answer", "arguments": ' {"1": "same"}\n'}}
THINKING = [{"type": "thinking", "thinking": NESTED}, {"text": "a"}]
BLOCKED = "content_filter: PROHIBITED_CONTENT"
ANSWERS = [  # response, raw answer, finish reason
    *(
        (completion(json.loads(message), json.loads(finish)), json.loads(raw), expected)
        for raw, expected, finish, message in text_table(r"""
        # raw answer | finish reason | as the server states it | message
        "<think>x</think>1. a" | stop | "stop" | {"content": "<think>x</think>1. a"}
        "No." | refusal | "stop" | {"content": null, "refusal": "No."}
        "a" | length | "length" | {"content": "a", "refusal": null}
        "" | content_filter | "content_filter" | {"content": null}
        "" | length | "length" | {"content": "", "reasoning_content": "so much"}
        "a" | sensitive | "sensitive" | {"content": "a"}
        "a" |  | null | {"content": "a"}
        "a" |  | 3 | {"content": "a"}
        "a" | MAX_TOKENS | "MAX_TOKENS" | {"content": "a"}
        "ab" | stop | "stop" | {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}
        "\ud800" | stop | "stop" | {"content": "\ud800"}
        "" | SAFETY | "SAFETY" | {}
        "{\"a\": []}" | stop | "stop" | {"content": null, "reasoning_content": "{\"a\": []}"}
        """)
    ),
    (completion(None, BLOCKED), "", BLOCKED),
    (completion({"content": THINKING}), "a", "stop"),
    (
        completion({"tool_calls": [ARGUMENTS]}, "tool_calls"),
        '{"1": "same"}',
        "tool_calls",
    ),
    (
        {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}, "model": "m-1"},
        "",
        "content_filter",
    ),
    (
        {"choices": None, "prompt_filter_results": [FILTERED], "model": "m-1"},
        "",
        "content_filter",
    ),
    (
        {**completion({"content": ""}), "prompt_filter_results": [FILTERED]},
        "",
        "content_filter",
    ),
    (events("1. a", "b"), "1. ab", ""),
    *(
        (body, "1. a", "stop")
        for body in (
            b"data: " + WHOLE + DONE,
            WHOLE + DONE,
            json.dumps(completion({"content": "1. a"}), indent=1).encode() + DONE,
            b": PROCESSING\n\n" + WHOLE,
            b"event: message\nid: 1\ndata: " + WHOLE + b"\nretry: 5\n",
        )
    ),
    (
        b'data: {"model": "m-1", "choices": [{"delta": {"reasoning": "{\\"a\\": 1}"}}]}',
        '{"a": 1}',
        "",
    ),
]
# Tokens of prompt and answer as they are counted, and the usage as it is reported.
USAGES = [
    (
        json.loads(usage),
        None if counted == "unknown" else tuple(map(int, counted.split())),
    )
    for counted, usage in text_table("""
        5 7 | {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
        0 12 | {"total_tokens": 12}
        5 7 | {"input_tokens": 5, "output_tokens": 7}
        5 207 | {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 212}
        5 7 | {"prompt_tokens": 5, "total_tokens": 12}
        5 7 | {"completion_tokens": 7, "total_tokens": 12}
        0 12 | {"prompt_tokens": null, "completion_tokens": null, "total_tokens": 12}
        unknown | {"prompt_tokens": 0, "completion_tokens": 0}
        unknown | {"prompt_tokens": 0, "completion_tokens": 7}
        unknown | null
        unknown | {}
        unknown | {"prompt_tokens": 5}
        unknown | {"input_tokens": 5}
        unknown | {"prompt_tokens": -1, "completion_tokens": 1}
        unknown | {"prompt_tokens": "5", "completion_tokens": 1}
        unknown | {"prompt_tokens": true, "completion_tokens": 1}
        unknown | {"prompt_tokens": 1e+30, "completion_tokens": 1}
        unknown | {"prompt_tokens": 100000001, "completion_tokens": 1}
        unknown | {"prompt_tokens": 1, "completion_tokens": 1099511627776}
        unknown | [1, 2]
    """)
]
FAILURES = [  # response and reason
    *(
        (body.encode(), reason)
        for reason, body in text_table("""
        broken_reply | <html><body>Log in</body></html>
        broken_reply | {"choices": [{"mess
        broken_reply | []
        broken_reply | null
        broken_reply | {"error": {"message": "overloaded"}}
        broken_reply | {"choices": []}
        broken_reply | {"choices": null}
        broken_reply | {"choices": [null]}
        broken_reply | {"choices": [{"text": "a"}]}
        broken_reply | data: [DONE]
        broken_reply | data: {
        broken_reply | data: {"error": {"message": "overloaded"}}
        empty_answer | {"model": "m-1", "choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}
        empty_answer | {"model": "m-1", "choices": [{"message": {"content": null}, "finish_reason": null}]}
        empty_answer | {"model": "m-1", "choices": [{"message": {}, "finish_reason": "stop"}]}
        empty_answer | {"model": "m-1", "choices": [{"message": {"content": "<think>So"}, "finish_reason": "stop"}]}
        empty_answer | data: {"choices": [{"delta": {"reasoning": "so much"}, "finish_reason": "stop"}]}
        broken_reply | {"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}
        broken_reply | {"error": {"message": "upstream says no", "code": 502}}
        broken_reply | {"error": {"message": "upstream says no", "code": "402"}}
        broken_reply | {"error": {"message": "upstream says no", "code": null}}
        server_error | {"choices": [{"error": {"message": "no", "code": 502}, "finish_reason": "error"}]}
    """)
    ),
    *(
        (body, "broken_reply")
        for body in (
            b"",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"choices": [' + b"[]," * 1_000_000 + b"[]]}",
            NESTED,
            completion(
                {"content": ""}, error={"message": "upstream says no", "code": 502}
            ),
        )
    ),
    *(
        (completion({"content": "a"}, finish), "server_error")
        for finish in (
            "network_error",
            "error",
            "abort",
            "ERROR",
            "MALFORMED_FUNCTION_CALL",
        )
    ),
    *(
        (completion(message), "empty_answer")
        for message in (
            {"content": " \n"},
            {"content": NESTED},
            {"content": None, "tool_calls": [None, 3], "reasoning": "so much"},
            {"content": "<think>So much.</think>\n"},
        )
    ),
]
RESPONSES = [
    *(response for response, *_ in ANSWERS),
    *(completion({"content": "a"}, usage=usage) for usage, _ in USAGES),
    *(response for response, _ in FAILURES),
]
GOOD = completion({"content": "1. So it is said."}, usage=USAGE)


def text_of(number):
    return f"This is case number {number}."


def run(out, response, texts, **options):
    """Label texts with a server that responds to each question in this way."""

    def respond(body):
        value = response(
            json.loads(body["messages"][-1]["content"].rpartition("Sentence: ")[2])
        )
        return reply(200, value if isinstance(value, bytes) else json.dumps(value))

    with answering(respond) as server:
        llm = entry(server.base_url, attempts=1)
        given = {"polarity": "positive", "keep_going": True, **options}
        return llm_labeler.generate(texts, llm={"mine": llm}, out=out, **given)


@module_fixture
def shown(tmp_path_factory):
    """What was stored about a case."""
    texts = {text_of(number): response for number, response in enumerate(RESPONSES)}
    settings = {"breaker.max_failures": 1.0, "breaker.refusals": 10**6}
    result = run(
        tmp_path_factory.mktemp("replies") / "out",
        lambda text: texts.get(text, GOOD),
        [*texts, "A usual text."],
        settings=settings,
    )
    unknown = sum(usage is None for _, usage in USAGES) + len(ANSWERS)
    # Failures are charged, too, as they may have been billed.
    assert result.asked.spent.estimated == unknown + len(FAILURES)
    return cache(lambda number: llm_labeler.show(text_of(number), work=result.work))


@parametrize("number", range(len(ANSWERS)))
def test_answers(shown, number):
    (answer,) = shown(number).answers
    assert (answer.reply.raw, answer.reply.finish, answer.reply.model) == (
        *ANSWERS[number][1:],
        "m-1",
    )
    assert answer.estimated


@parametrize("number", range(len(USAGES)))
def test_usage(shown, number):
    (answer,) = shown(len(ANSWERS) + number).answers
    usage, counted = USAGES[number][1], answer.reply.usage
    assert counted is not None
    assert answer.estimated == (usage is None)
    assert usage is None or (counted.prompt_tokens, counted.completion_tokens) == usage


@parametrize("number", range(len(FAILURES)))
def test_unusable_responses(shown, number):
    (failure,) = shown(len(ANSWERS) + len(USAGES) + number).failures
    assert (failure.reason, failure.final) == (FAILURES[number][1], False)
    assert len(failure.detail) < 200


@table("""
    code, error, message
    402 | RemoteError | the account is exhausted
    insufficient_quota | RemoteError | the account is exhausted
    403 | AuthError | refused a call without a key with HTTP 403
    404 | RemoteError | HTTP 404 although the server lists emulated
""")
def test_a_refusal_in_a_response_with_status_200(code, error, message, tmp_path):
    fault = {"error": {"message": "upstream says no: no such model", "code": code}}
    empty = {**fault, **completion({"content": None})}
    for number, value in enumerate(
        (fault, {**fault, "choices": []}, empty, {"choices": [fault]})
    ):
        with raises(error, match=message):
            run(
                tmp_path / str(number),
                lambda _, value=value: value,
                ["A text."],
                keep_going=False,
            )
