"""Mutated responses of servers are parsed or raise known errors."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from benchmarks.mutated import mutated
from llm_labeler.clients.chat_completions import models_of, read_body, reply_of
from llm_labeler.dispatch.answer_store import SubmittedBatch
from llm_labeler.dispatch.openai_batches import _batch_status, _decoded, read_lines, read_results
from llm_labeler.records import CallFailed, LlmReply, TokenUsage
from pairkit.base.errors import BadReply
from pairkit.base.openai_api.refusals import Refusal, RefusedCall
from tests.llm_labeler.llm_server import an_ask, provider, run

DEEP: Any = "deep"
for _ in range(150):  # can still be copied when nested twice
    DEEP = [DEEP] if _ % 2 else {"text": DEEP}
JUNK: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**63, -(2**63), 10**4000, 1e308, -0.5),
    *("", "x", "\ud800", "\udfff\ud800", "\0", "\n\r\x1b[2J", "9" * 400, "[" * 5000, "é" * 3000, "NaN", "-1"),
    *([], [None], [[]], {}, {"": None}, {"message": []}, [{"text": ["a"]}], DEEP),
]
MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "1. a"}], "refusal": None}
FAULT = {"message": "m", "type": "t", "param": "p", "code": 400, "metadata": {"raw": "r"}}
REPLY = {
    "id": "c",
    "model": "m",
    "error": FAULT,
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}
ERROR = {"error": {**FAULT, "innererror": {"code": "c"}}, "detail": [{"msg": "m"}]}
MODELS = {"object": "list", "data": [{"id": "a"}, {"id": "b"}]}
BATCH = {
    "id": "b",
    "status": "completed",
    "output_file_id": "f",
    "error_file_id": "g",
    "metadata": {"tag": "t"},
    "errors": {"data": [{"message": "m"}]},
}
LINE = {"custom_id": "a", "response": {"status_code": 200, "body": REPLY}, "error": None}


def as_bytes(value: Any, draw: random.Random) -> bytes:
    """JSON, sometimes with changed, missing or additional bytes."""
    body = bytearray(json.dumps(value, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass"))
    if draw.random() < 0.2:
        at = draw.randrange(len(body))
        body[at : at + draw.randint(0, 4)] = draw.randbytes(draw.randint(0, 4))
    return bytes(body)


def reply(draw: random.Random) -> None:
    try:
        result = reply_of(read_body(as_bytes(mutated(REPLY, draw, JUNK), draw)))
    except CallFailed as failed:
        failed.detail.encode()
        return
    except RefusedCall as refused:
        refused.refusal.message.encode()
        return
    assert isinstance(result.raw, str)
    assert result.usage is None or isinstance(result.usage, TokenUsage)


def refusal(draw: random.Random) -> None:
    status = draw.choice([302, 400, 401, 403, 404, 413, 422, 429, 500])
    result = Refusal.of(status, as_bytes(mutated(ERROR, draw, JUNK), draw))
    ask = an_ask(schema={})
    PROVIDER.dialect.adapt(ask, PROVIDER.dialect.form(ask), result)
    assert PROVIDER.dialect.setting_error(result) is None or status in (400, 422)
    for fact in (result.is_exhausted, result.is_about_key, result.is_about_model, result.is_about_question):
        assert fact in (True, False)
    result.message.encode()


def models(draw: random.Random) -> None:
    assert all(isinstance(name, str) for name in models_of(as_bytes(mutated(MODELS, draw, JUNK), draw)))


def batches(draw: random.Random) -> None:
    with suppress(BadReply):
        result = _decoded(as_bytes(mutated(BATCH, draw, JUNK), draw))
        _batch_status(result).batch_id.encode("ascii")


def lines(draw: random.Random) -> None:
    content = b"\n".join(as_bytes(mutated(LINE, draw, JUNK), draw) for _ in range(3))
    waiting = SubmittedBatch("llama", "b", "completed", {"a": an_ask().key}, TokenUsage(10, 10), None)
    assert all(isinstance(line.custom_id, str) for line in read_lines(content))
    offline: Any = _Offline()
    results = run(read_results(offline, waiting, "completed", read_lines(content), 0.5))
    assert (results.answers.keys() | results.failures.keys()) == {"a"}
    assert all(isinstance(answer.reply, LlmReply) for answer in results.answers.values())


PROVIDER = provider("http://127.0.0.1:1/v1", kind="openai", temperature=1.0, price_in=1.0, price_out=2.0)


class _Offline:
    """A provider whose server has no list of models."""

    prices, name = PROVIDER.prices, PROVIDER.name

    async def explain(self, refused: RefusedCall) -> Any:
        if refused.refusal.is_about_model:
            return CallFailed("rejected", "no such model", retry=False)
        return await PROVIDER.explain(refused)


@pytest.mark.parametrize("door", [reply, refusal, models, batches, lines], ids=lambda door: door.__name__)
@pytest.mark.parametrize("inputs", [300, pytest.param(50_000, marks=pytest.mark.slow)])
def test_hostile_input_raises_only_known_errors(door: Callable[[random.Random], None], inputs: int) -> None:
    for seed in range(inputs):
        try:
            door(random.Random(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
