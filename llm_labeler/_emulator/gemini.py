"""Gemini's `generateContent` and its batches, over the same answers and faults as OpenAI's protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from llm_labeler._emulator.anthropic import translated
from llm_labeler._emulator.chat import Chat
from llm_labeler._emulator.http import Request, Response, json_response
from llm_labeler._emulator.jobs import Job, Jobs, Outcome
from llm_labeler._emulator.options import Options

_CALL = re.compile(r"/models/([^/:]+):(generateContent|batchGenerateContent)")
_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_RPC = {400: 3, 401: 16, 404: 5, 429: 8, 503: 14}
_STATES = {"completed": "SUCCEEDED", "expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}
_ENDS = {"stop": "STOP", "length": "MAX_TOKENS"}
# Names in OpenAI's requests, by which options refuse fields.
_SAME = {"maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "seed": "seed"}


def error(status: int, message: str) -> dict[str, Any]:
    """An error as Gemini words it."""
    return {"error": {"code": status, "message": message, "status": _NAMES.get(status, "INTERNAL")}}


class Gemini:
    """`/v1beta/models` and `/v1beta/batches`."""

    def __init__(self, chat: Chat, jobs: Jobs, options: Options) -> None:
        self._chat, self._jobs, self._options = chat, jobs, options

    def reply(self, request: Request, path: str) -> Response | None:
        """The answer for a path below the API's root; None: no such path here."""
        if call := _CALL.fullmatch(path):
            body = json.loads(request.body)
            if call[2] == "batchGenerateContent":
                return self._create(call[1], body)
            return translated(self._chat.reply(_chat_body(call[1], body)), _answer, error)
        match (request.method, *path.strip("/").split("/")):
            case ("GET", "models") if self._options.lists_models:
                return json_response(
                    {"models": [{"name": f"models/{name}"} for name in self._options.models]}
                )
            case ("GET", "batches"):
                return self._list(request.query)
            case ("GET", "batches", name) if job := self._jobs.get(f"batches/{name}"):
                return json_response(self._shown(job))
            case _:
                return None

    def _create(self, model: str, body: Mapping[str, Any]) -> Response:
        batch = body["batch"]
        entries = batch["inputConfig"]["requests"]["requests"]
        if model not in self._options.models:
            return json_response(error(404, f"models/{model} is not found for API version v1beta"), 404)
        # The key goes along as it is: whoever hands in none gets the order of the requests.
        requests = [
            (str((entry.get("metadata") or {}).get("key", "")), _chat_body(model, entry["request"]))
            for entry in entries
        ]
        job = self._jobs.start(requests, "batches/{}", str(batch["displayName"]))
        return json_response(self._shown(job))

    def _list(self, query: Mapping[str, str]) -> Response:
        page, has_more = self._jobs.page(query.get("pageToken", ""), int(query.get("pageSize", "20")))
        found: dict[str, Any] = {"operations": [self._shown(job) for job in page]}
        return json_response(found | ({"nextPageToken": page[-1].name} if has_more else {}))

    def _shown(self, job: Job) -> dict[str, Any]:
        created = datetime.fromtimestamp(job.created_s, UTC).isoformat().replace("+00:00", "Z")
        ends = self._options.batch_ends
        state = "RUNNING" if job.outcomes is None else _STATES[ends]
        about = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "model": "models/emulated",
            "displayName": job.tag,
            "createTime": created,
            "updateTime": created,
            "name": job.name,
            "state": f"BATCH_STATE_{state}",
        }
        found: dict[str, Any] = {"name": job.name, "metadata": about}
        if job.outcomes is None:
            return found
        if ends == "failed":
            return found | {"done": True, "error": {"code": 3, "message": "emulated"}}
        # Those that were not asked are not among the responses.
        told = [one for one in job.outcomes if one.status is not None]
        output = {"inlinedResponses": {"inlinedResponses": [_response(one) for one in told]}}
        kind = {"@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatchOutput"}
        return found | {"metadata": about | {"output": output}, "done": True, "response": kind | output}


def _chat_body(model: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A request as one of OpenAI's."""
    wanted = body.get("generationConfig") or {}
    contents = [
        ("user" if one.get("role") == "user" else "assistant", one) for one in body.get("contents") or []
    ]
    if system := body.get("systemInstruction"):
        contents.insert(0, ("system", system))
    turns = [
        {"role": role, "content": "".join(part.get("text", "") for part in content["parts"])}
        for role, content in contents
    ]
    found = {_SAME[name]: value for name, value in wanted.items() if name in _SAME}
    if schema := wanted.get("responseJsonSchema"):
        found["response_format"] = {"json_schema": {"schema": schema}}
    return {"model": model, "messages": turns, **found}


def _answer(completion: Mapping[str, Any]) -> dict[str, Any]:
    choice = completion["choices"][0]
    said, usage = choice["message"], completion.get("usage")
    found: dict[str, Any] = {"modelVersion": completion["model"], "responseId": completion["id"]}
    if said["refusal"]:
        found["promptFeedback"] = {"blockReason": "SAFETY"}
    else:
        content = {"role": "model", "parts": [{"text": said["content"]}]}
        found["candidates"] = [
            {"content": content, "finishReason": _ENDS[choice["finish_reason"]], "index": 0}
        ]
    if usage:
        counts = {"promptTokenCount": "prompt_tokens", "candidatesTokenCount": "completion_tokens"}
        counts["totalTokenCount"] = "total_tokens"
        found["usageMetadata"] = {name: usage[ours] for name, ours in counts.items()}
    return found


def _response(outcome: Outcome) -> dict[str, Any]:
    known = {"metadata": {"key": outcome.name}} if outcome.name else {}
    if outcome.status == 200 and outcome.body.get("choices"):
        return {**known, "response": _answer(outcome.body)}
    said = outcome.body.get("error") or {"message": "the model said nothing"}
    return {**known, "error": {"code": _RPC.get(outcome.status or 0, 13), "message": said["message"]}}
