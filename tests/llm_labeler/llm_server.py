"""Helpers for tests of providers on servers: settings, questions, and a server that plays back bytes."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from llm_labeler import CallFailed
from llm_labeler.clients.llm_server import ServerProvider
from llm_labeler.records import Ask, AskKey, LlmReply, Message, content_hash
from llm_labeler.settings import LlmSettings

T = TypeVar("T")

KEY = "sk-emulated-0123456789"
KEYS = {
    "openai": "OPENAI_API_KEY",
    "glm": "ZHIPUAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
ENVIRON = {**dict.fromkeys(KEYS.values(), KEY), "OTHER_KEY": "sk-wrong"}
SENTENCES = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}


def an_ask(number: int = 1, *, schema: dict[str, Any] | None = None, llm: str = "llama") -> Ask:
    text = f"Patient {number} is fine."
    prompt = (
        f"Your job is to generate 3 synonymous sentences of a given input sentence. Input sentence: {text}. "
        "Output:"
    )
    key = AskKey(content_hash(text), llm, "positive", "prompt", "parameters")
    return Ask(key, (Message("user", prompt),), schema, text, 3)


def settings(base_url: str, **fields: Any) -> LlmSettings:
    entry = {"kind": "openai_compatible", "model": "emulated", "base_url": base_url, "timeout_s": 5.0}
    # A key is sent to this machine only if its variable is named.
    named = KEYS.get(str(fields.get("kind")))
    return LlmSettings(**(entry | {"api_key_env": named} | fields))


def provider(base_url: str, *, name: str = "llama", **fields: Any) -> ServerProvider:
    return ServerProvider(name, settings(base_url, **fields), environ=ENVIRON)


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(main)


async def _with(asked: ServerProvider, call: Coroutine[Any, Any, T]) -> T:
    try:
        return await call
    finally:
        await asked.close()


def finished(asked: ServerProvider, call: Coroutine[Any, Any, T]) -> T:
    """Run a call, and close the connections."""
    return run(_with(asked, call))


def reply_of(asked: ServerProvider, ask: Ask | None = None) -> LlmReply:
    return finished(asked, asked.reply(ask or an_ask()))


def check(asked: ServerProvider) -> None:
    finished(asked, asked.check())


async def replies(asked: ServerProvider, asks: Iterable[Ask], *, tries: int = 50) -> list[LlmReply]:
    """All replies, with simple retries and 16 concurrent calls."""
    places = asyncio.Semaphore(16)

    async def one(ask: Ask) -> LlmReply:
        for _ in range(tries):
            try:
                async with places:
                    return await asked.reply(ask)
            except CallFailed as failed:
                if not failed.retry:
                    raise
                await asyncio.sleep(0.002)
        raise AssertionError("no answer in so many tries")

    try:
        return list(await asyncio.gather(*(one(ask) for ask in asks)))
    finally:
        await asked.close()


@contextmanager
def playing_back(*answers: bytes) -> Iterator[str]:
    """A server that answers requests with these bytes in order; the last response repeats."""
    listener = socket.create_server(("127.0.0.1", 0))
    queue = list(answers)

    def play() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                _read_request(connection)
                connection.sendall(queue.pop(0) if len(queue) > 1 else queue[0])

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def http(status: int, body: bytes | str, **headers: str) -> bytes:
    """An HTTP response; underscores in header names become hyphens."""
    content = body.encode() if isinstance(body, str) else body
    named = {"content-type": "application/json"} | {n.replace("_", "-"): v for n, v in headers.items()}
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in named.items())]
    return (
        "\r\n".join([*lines, f"content-length: {len(content)}", "connection: close", "", ""]).encode()
        + content
    )


def _read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while left > 0 and (more := connection.recv(65536)):
        left -= len(more)
