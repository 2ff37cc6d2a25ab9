"""Beside the makers' own SDKs, where installed: they send what we send, and read what the emulator says.

The emulator is written by the same hands as the client; the SDKs are not.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from llm_labeler._batch.anthropic import AnthropicBatches
from llm_labeler._batch.gemini import GeminiBatches
from llm_labeler._batch.lines import Portion, custom_id
from llm_labeler._emulator import Server, serve
from llm_labeler._providers.anthropic import AnthropicDialect
from llm_labeler._providers.gemini import GeminiDialect
from llm_labeler._records import Ask, Message
from llm_labeler._settings import LlmSettings
from tests.llm_labeler.llm_server import KEY, SENTENCES, an_ask, finished, provider

CHAT = (Message("system", "You rewrite."), Message("user", "One?"), Message("assistant", "Two."))
ASK = Ask(an_ask().key, (*CHAT, Message("user", "Input sentence: It is late.. Output:")), SENTENCES)
FIELDS: dict[str, Any] = {"model": "emulated", "max_tokens": 100}


def last_body(server: Server, ends: str) -> Any:
    return json.loads(next(r.body for r in reversed(server.requests) if r.path.endswith(ends)))


def test_anthropics_sdk_sends_what_we_send_and_reads_what_the_emulator_says() -> None:
    anthropic = pytest.importorskip("anthropic", reason="needs `pip install anthropic`")
    from pydantic import ConfigDict, TypeAdapter, with_config

    dialect = AnthropicDialect("claude", LlmSettings(kind="anthropic", **FIELDS))
    body = dialect.body(ASK, dialect.form)
    params = anthropic.types.message_create_params.MessageCreateParamsNonStreaming
    TypeAdapter(with_config(ConfigDict(extra="forbid"))(params)).validate_python(body)
    with serve() as server:
        client = anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0)
        message = client.messages.create(**body)
        assert last_body(server, "/messages") == body
        read = dialect.reply_of(json.loads(message.model_dump_json()))
        assert read.raw == message.content[0].text
        assert read.usage
        assert (read.usage.prompt_tokens, read.finish) == (message.usage.input_tokens, message.stop_reason)

        asked = AnthropicBatches(provider(server.base_url, kind="anthropic"), 0.01)
        lines = [
            asked.line(custom_id(an_ask(n).key), dialect.body(an_ask(n), dialect.form), "label-1")
            for n in range(3)
        ]
        batch = client.messages.batches.create(requests=[json.loads(line) for line in lines])
        theirs = last_body(server, "/batches")
        portion = Portion(tag="label-1", lines=lines, keys={str(n): an_ask(n).key for n in range(3)})
        ours = finished(asked._provider, asked.start(portion, ""))
        assert last_body(server, "/batches") == theirs
        assert [one.id for one in client.messages.batches.list()] == [ours.batch_id, batch.id]
        assert client.messages.batches.retrieve(ours.batch_id).processing_status == "ended"
        results = {one.custom_id: one.result.type for one in client.messages.batches.results(ours.batch_id)}
        assert results == {f"{custom_id(an_ask(n).key)}-1": "succeeded" for n in range(3)}


def test_googles_sdk_sends_what_we_send_and_reads_what_the_emulator_says() -> None:
    genai = pytest.importorskip("google.genai", reason="needs `pip install google-genai`")
    types = genai.types
    entry = LlmSettings(kind="gemini", **FIELDS, temperature=0.5, seed=7)
    dialect = GeminiDialect("gemini", entry)
    body = dialect.body(ASK, dialect.form)
    contents = [types.Content.model_validate(content) for content in body["contents"]]
    wanted = {
        "system_instruction": types.Content(parts=[types.Part(text="You rewrite.")]),
        "temperature": 0.5,
        "seed": 7,
        "max_output_tokens": 100,
        "response_mime_type": "application/json",
        "response_json_schema": SENTENCES,
    }
    config = types.GenerateContentConfig(**wanted)
    with serve() as server:
        client = genai.Client(
            api_key=KEY,
            vertexai=False,
            http_options=types.HttpOptions(base_url=server.url, api_version="v1beta"),
        )
        answer = client.models.generate_content(model="emulated", contents=contents, config=config)
        theirs = last_body(server, ":generateContent")
        assert without_roles(theirs) == without_roles(body)
        read = dialect.reply_of(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
        assert (read.raw, read.finish) == (answer.text, "STOP")
        assert read.usage
        assert read.usage.prompt_tokens == answer.usage_metadata.prompt_token_count

        request = types.InlinedRequest(contents=contents, config=config, metadata={"key": "k"})
        job = client.batches.create(model="emulated", src=[request], config={"display_name": "label-1"})
        theirs = last_body(server, ":batchGenerateContent")
        asked = GeminiBatches(provider(server.base_url, kind="gemini"), 0.01)
        portion = Portion(tag="label-1", lines=[asked.line("k", body, "label-1")], keys={"k": ASK.key})
        ours = finished(asked._provider, asked.start(portion, ""))
        sent = last_body(server, ":batchGenerateContent")
        assert without_roles(sent) == without_roles(theirs)
        names = [one.name for one in client.batches.list(config={"page_size": 1})]
        assert names == [f"batches/{ours.batch_id}", job.name]
        done = client.batches.get(name=names[0])
        assert (done.state.name, done.display_name) == ("JOB_STATE_SUCCEEDED", "label-1")
        (response,) = done.dest.inlined_responses
        assert response.metadata == {"key": "k"}
        assert response.response.text


def without_roles(value: Any) -> Any:
    """A request but for what the SDK adds of itself: a role of the system's words, the model's name again."""
    if isinstance(value, list):
        return [without_roles(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: without_roles(one) for name, one in value.items() if name != "model"}
    if isinstance(system := found.get("systemInstruction"), dict):
        system.pop("role", None)
    return found
