"""Anthropic's Messages API and its batches, over the same answers and faults as OpenAI's protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from llm_labeler._emulator.chat import Chat
from llm_labeler._emulator.http import Request, Response, json_response
from llm_labeler._emulator.jobs import Job, Jobs, Outcome
from llm_labeler._emulator.options import Options

_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_REQUESTS = 100_000
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_ENDS = {"stop": "end_turn", "length": "max_tokens"}


def error(status: int, message: str) -> dict[str, Any]:
    """An error as Anthropic words it."""
    kind = _TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "emulated"}


class Anthropic:
    """`/v1/messages` and what is below it."""

    def __init__(self, chat: Chat, jobs: Jobs, options: Options) -> None:
        self._chat, self._jobs, self._options = chat, jobs, options

    def reply(self, request: Request, path: str) -> Response | None:
        """The answer for a path below the API's root; None: no such path here."""
        match (request.method, *path.strip("/").split("/")):
            case ("POST", "messages"):
                return translated(self._chat.reply(_chat_body(json.loads(request.body))), _message, error)
            case ("POST", "messages", "batches"):
                return self._create(json.loads(request.body), request)
            case ("GET", "messages", "batches"):
                return self._list(request)
            case ("GET", "messages", "batches", name) if job := self._jobs.get(name):
                return json_response(_shown(job, request))
            case ("GET", "messages", "batches", name, "results") if job := self._jobs.get(name):
                return self._results(job)
            case _:
                return None

    def _create(self, body: Mapping[str, Any], request: Request) -> Response:
        entries = body.get("requests")
        if not isinstance(entries, list) or not 1 <= len(entries) <= _MOST_REQUESTS:
            return json_response(error(400, "requests: expected 1 to 100000 of them"), 400)
        names = [entry["custom_id"] for entry in entries]
        if len({*names}) < len(names) or not all(map(_CUSTOM_ID.fullmatch, names)):
            return json_response(error(400, "requests: custom_id has to be unique, of 1 to 64 signs"), 400)
        requests = [(entry["custom_id"], _chat_body(entry["params"])) for entry in entries]
        return json_response(_shown(self._jobs.start(requests, "msgbatch_{}"), request))

    def _list(self, request: Request) -> Response:
        query = request.query
        page, has_more = self._jobs.page(query.get("after_id", ""), int(query.get("limit", "20")))
        ids = [job.name for job in page]
        found = {"data": [_shown(job, request) for job in page], "has_more": has_more}
        return json_response(
            {**found, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
        )

    def _results(self, job: Job) -> Response:
        if job.outcomes is None:
            return json_response(error(400, "the batch has not ended"), 400)
        left_out = "expired" if self._options.batch_ends == "expired" else "canceled"
        lines = [
            json.dumps({"custom_id": one.name, "result": _result(one, left_out)}) for one in job.outcomes
        ]
        content = "".join(line + "\n" for line in lines).encode()
        return Response(200, content, {"content-type": "application/x-jsonl"})


def translated(response: Response, answer: Any, problem: Any) -> Response:
    """A response of OpenAI's protocol in another; faults of the wire stay what they are.

    Args:
        response: As of a chat.
        answer: Makes an answer of a completion.
        problem: Makes an error of a status and a message.
    """
    try:
        value = json.loads(response.body)
    except ValueError:
        return response
    if response.status != 200:
        value = problem(response.status, value["error"]["message"])
    elif value["choices"]:
        value = answer(value)
    return Response(
        response.status, json.dumps(value).encode(), response.headers, response.fate, response.delay_s
    )


def _chat_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request as one of OpenAI's; fields that both call alike are refused alike."""
    system = body.get("system")
    turns = [{"role": "system", "content": system}] if system else []
    wanted = (body.get("output_config") or {}).get("format") or {}
    found = {name: value for name, value in body.items() if name not in ("system", "messages")}
    schema = {"response_format": {"json_schema": {"schema": wanted["schema"]}}} if "schema" in wanted else {}
    return {**found, "messages": [*turns, *(body.get("messages") or [])], **schema}


def _message(completion: Mapping[str, Any]) -> dict[str, Any]:
    choice = completion["choices"][0]
    said = choice["message"]
    text = said["content"] or said["refusal"]
    usage = completion.get("usage")
    tokens = (
        {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
        if usage
        else None
    )
    return {
        "id": f"msg_{completion['id']}",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": "refusal" if said["refusal"] else _ENDS[choice["finish_reason"]],
        "stop_sequence": None,
        **({"usage": tokens} if tokens else {}),
    }


def _result(outcome: Outcome, left_out: str) -> dict[str, Any]:
    if outcome.status is None:
        return {"type": left_out}
    if outcome.status == 200 and outcome.body.get("choices"):
        return {"type": "succeeded", "message": _message(outcome.body)}
    said = outcome.body.get("error") or {"message": "the model said nothing"}
    status = outcome.status if outcome.status != 200 else 500
    return {"type": "errored", "error": error(status, said["message"])}


def _shown(job: Job, request: Request) -> dict[str, Any]:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    if job.outcomes is None:
        counts["processing"] = len(job.requests)
    else:
        counts["succeeded"] = sum(one.status == 200 for one in job.outcomes)
        counts["expired"] = sum(one.status is None for one in job.outcomes)
        counts["errored"] = len(job.requests) - counts["succeeded"] - counts["expired"]
    created = datetime.fromtimestamp(job.created_s, UTC)
    host = request.headers.get("host", "localhost")
    ended = job.outcomes is not None
    return {
        "id": job.name,
        "type": "message_batch",
        "processing_status": "ended" if ended else "in_progress",
        "request_counts": counts,
        "created_at": created.isoformat(),
        "expires_at": (created + timedelta(days=1)).isoformat(),
        "ended_at": created.isoformat() if ended else None,
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": f"http://{host}/v1/messages/batches/{job.name}/results" if ended else None,
    }
