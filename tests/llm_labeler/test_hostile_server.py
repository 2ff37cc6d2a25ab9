"""Mutated responses of a server: a run ends with a dataset or a known error."""

import json
import random
import re

import pytest

import llm_labeler
from benchmarks.mutated import mutated
from pairkit import PairkitError
from tests.support.llm import Options, reply, serve

from .llm_server import entry

DEEP = "deep"
for _ in range(150):  # can still be copied when nested twice
    DEEP = [DEEP] if _ % 2 else {"text": DEEP}
JUNK = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    -(2**63),
    10**4000,
    1e308,
    -0.5,
    "",
    "x",
    "\ud800",
    "\udfff\ud800",
    "\0",
    "\n\r\x1b[2J",
    "9" * 400,
    "[" * 5000,
    "é" * 3000,
    "NaN",
    "-1",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"message": []},
    [{"text": ["a"]}],
    DEEP,
]
FAULT = {
    "message": "m",
    "type": "t",
    "param": "p",
    "code": 400,
    "metadata": {"raw": "r"},
}
MESSAGE = {
    "role": "assistant",
    "content": [{"type": "text", "text": "1. So it is said."}],
    "refusal": None,
}
REPLY = {
    "id": "c",
    "model": "m",
    "error": FAULT,
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}
ERROR = {"error": {**FAULT, "innererror": {"code": "c"}}, "detail": [{"msg": "m"}]}
MODELS = {"object": "list", "data": [{"id": "emulated"}, {"id": "b"}]}
FILES = {"output_file_id": "f", "error_file_id": "g"}
BATCH = {
    "id": "b",
    **FILES,
    "metadata": {"tag": "t"},
    "errors": {"data": [{"message": "m"}]},
}


class Mutating:
    """Responds with mutated JSON, sometimes with changed, missing or additional bytes."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.names = ["a"]  # of the questions in a batch

    def respond(self, path, body):
        if path.endswith("/files"):
            self.names = re.findall(r'"custom_id": "(\w+)"', body.decode())
            return reply(200, self.mutate({"id": "f"}))
        if path.endswith("/content"):
            answer = {"status_code": 200, "body": REPLY}
            lines = [
                self.mutate({"custom_id": name, "response": answer})
                for name in self.names
            ]
            return reply(200, b"\n".join(lines))
        if "/batches" in path:  # that has ended, else it is waited for
            batch = mutated(BATCH, self.draw, JUNK)
            ended = {"status": "completed"}
            return reply(
                200, json.dumps(batch | ended if isinstance(batch, dict) else batch)
            )
        if path.endswith("/models"):
            return reply(200, self.mutate(MODELS))
        status = self.draw.choice(
            [200, 200, 200, 302, 400, 401, 403, 404, 413, 422, 429, 500]
        )
        return reply(status, self.mutate(REPLY if status == 200 else ERROR))

    def mutate(self, value):
        changed = mutated(value, self.draw, JUNK) if self.draw.random() < 0.7 else value
        text = json.dumps(changed, ensure_ascii=self.draw.random() < 0.5)
        body = bytearray(text.encode("utf-8", "surrogatepass"))
        if self.draw.random() < 0.2:
            at = self.draw.randrange(len(body))
            body[at : at + self.draw.randint(0, 4)] = self.draw.randbytes(
                self.draw.randint(0, 4)
            )
        return bytes(body)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("runs", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_mutated_responses_end_in_a_dataset_or_a_known_error(runs, tmp_path):
    ends = set[str]()
    for seed in range(runs):
        with serve(Options(respond=Mutating(seed).respond)) as server:
            # So that responses come in order.
            ordered = {"attempts": 2, "seed": 1, "concurrency": 1}
            llm = entry(server.base_url, kind="openai", **ordered)
            texts = [f"Patient {number} is fine." for number in range(4)]
            given = {"llm": {"a": llm}, "polarity": "positive", "keep_going": True}
            try:
                result = llm_labeler.generate(
                    texts, out=tmp_path / str(seed), batch=seed % 2 > 0, **given
                )
                ends.add(type(result.problem).__name__)
            except PairkitError as error:
                ends.add(type(error).__name__)
                str(error).encode()
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise
    assert len(ends) >= 3, ends
