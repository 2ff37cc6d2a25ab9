"""Helpers for tests of LLMs on servers."""

import asyncio
from contextlib import contextmanager
from typing import TypeVar

from llm_labeler.clients.llm_server import ServerProvider
from llm_labeler.records import Ask, AskKey, Message, content_hash
from llm_labeler.settings.llms import LlmSettings
from tests.support.llm import Options, reply, serve

T = TypeVar("T")

KEY = "sk-emulated-0123456789"
KEYS = {name: f"{name.upper()}_API_KEY" for name in ("openai", "anthropic", "gemini")}
KEYS["glm"] = "ZHIPUAI_API_KEY"
ENVIRON = {**dict.fromkeys(KEYS.values(), KEY), "OTHER_KEY": "sk-wrong"}


def an_ask(number=1, *, schema=None, llm="llama"):
    text = f"Patient {number} is fine."
    prompt = (
        f"Your job is to generate 3 synonymous sentences of a given input sentence. Input sentence: {text}. "
        "Output:"
    )
    key = AskKey(content_hash(text), llm, "positive", "prompt", "parameters")
    return Ask(key, (Message("user", prompt),), schema, text, 3)


def entry(base_url, **fields):
    """The entry of an LLM on this server."""
    return {"kind": "server", "model": "emulated", "base_url": base_url, **fields}


def provider(base_url, *, name="llama", **fields):
    # A key is sent to this machine only if its variable is named.
    named = KEYS.get(str(fields.get("kind")))
    given = {"api_key_env": named, "timeout_s": 5.0, **fields}
    settings = LlmSettings(**entry(base_url, **given))
    return ServerProvider(name, settings, environ=ENVIRON)


def as_anthropic(base_url, monkeypatch):
    """An LLM on a server that counts as Anthropic's."""
    monkeypatch.setattr("llm_labeler.clients.llm_server.ANTHROPIC_HOST", "127.0.0.1")
    return provider(base_url, kind="anthropic")


def address_and_key(kind, **fields):
    """The address of an LLM, and the key that is sent to it."""
    asked = ServerProvider(
        "mine", LlmSettings(kind=kind, model="m", **fields), environ=ENVIRON
    )
    return asked.address.url, asked.channel.key and asked.channel.key.secret


def run(main):
    return asyncio.run(main)


async def _with(asked, call):
    try:
        return await call
    finally:
        await asked.close()


def finished(asked, call):
    """Run a call, and close the connections."""
    return run(_with(asked, call))


def reply_of(asked, ask=None):
    return finished(asked, asked.reply(ask or an_ask()))


def check(asked):
    finished(asked, asked.check())


def answering(respond):
    """A server that responds to questions with `respond(body)`."""
    return serve(
        Options(
            respond=lambda path, body: (
                None if path.endswith("models") else respond(body)
            )
        )
    )


@contextmanager
def responding(status, body, **headers):
    """The address of a server with one response to every request."""
    with serve(Options(respond=lambda *_: reply(status, body, **headers))) as server:
        yield server.base_url
