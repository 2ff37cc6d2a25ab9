"""OpenAI's Batch API: files, and batches over them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from llm_labeler._emulator.chat import error
from llm_labeler._emulator.http import Request, Response, json_response
from llm_labeler._emulator.jobs import Job, Jobs, Outcome
from llm_labeler._emulator.options import Options

_BOUNDARY = re.compile(r'boundary="?([^";]+)')
_MOST_LINES = 50_000


class Batches:
    """Files and batches; what an ended batch says is in files."""

    def __init__(self, jobs: Jobs, options: Options) -> None:
        self._jobs, self._options = jobs, options
        self._files: dict[str, bytes] = {}
        self._inputs: dict[str, str] = {}  # batch to file
        self._outputs: dict[str, dict[str, str]] = {}  # batch to its files

    def reply(self, request: Request, path: str) -> Response | None:
        """The answer for a path below the API's root; None: no such path here."""
        match (request.method, *path.strip("/").split("/")):
            case ("POST", "files"):
                return self._upload(request)
            case ("GET", "files", name, "content") if name in self._files:
                return Response(200, self._files[name], {"content-type": "application/octet-stream"})
            case ("POST", "batches"):
                return self._create(json.loads(request.body))
            case ("GET", "batches"):
                return self._list(request.query)
            case ("GET", "batches", name) if job := self._jobs.get(name):
                return json_response(self._shown(job))
            case _:
                return None

    def _upload(self, request: Request) -> Response:
        boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
        if boundary is None:
            return error(400, "expected multipart/form-data")
        for part in request.body.split(b"--" + boundary[1].encode()):
            head, _, content = part.partition(b"\r\n\r\n")
            if b'name="file"' in head:
                return json_response(self._keep(content.removesuffix(b"\r\n")))
        return error(400, "no file", param="file")

    def _keep(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self._files) + 1}"
        self._files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
            "filename": "batch.jsonl",
            "purpose": "batch",
            "status": "processed",
        }

    def _create(self, body: Mapping[str, Any]) -> Response:
        content = self._files.get(str(body.get("input_file_id")))
        if content is None:
            return error(400, "no such file", param="input_file_id")
        lines = [json.loads(line) for line in content.splitlines()]
        if len(lines) > _MOST_LINES:
            return error(400, "too many requests in the file")
        requests = [(line["custom_id"], line["body"]) for line in lines]
        job = self._jobs.start(requests, "batch_{}", str((body.get("metadata") or {}).get("tag", "")))
        self._inputs[job.name] = str(body["input_file_id"])
        return json_response(self._shown(job))

    def _list(self, query: Mapping[str, str]) -> Response:
        page, has_more = self._jobs.page(query.get("after", ""), int(query.get("limit", "20")))
        shown = [self._shown(job) for job in page]
        return json_response({"object": "list", "data": shown, "has_more": has_more})

    def _shown(self, job: Job) -> dict[str, Any]:
        outcomes = job.outcomes
        found: dict[str, Any] = {
            "id": job.name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": self._inputs.get(job.name),
            "completion_window": "24h",
            "created_at": int(job.created_s),
            "status": "in_progress" if outcomes is None else self._options.batch_ends,
            "metadata": {"tag": job.tag} if job.tag else {},
            "request_counts": {"total": len(job.requests), "completed": 0, "failed": 0},
        }
        if outcomes is None:
            return found
        if self._options.batch_ends == "failed":
            problem = {"code": "invalid_json_line", "line": 1, "message": "emulated"}
            return found | {"errors": {"data": [problem]}}
        return found | self._files_of(job.name, outcomes)

    def _files_of(self, name: str, outcomes: list[Outcome]) -> dict[str, str]:
        if name not in self._outputs:
            # OpenAI lists those that expired as errors, and says nothing of cancelled ones.
            told = [one for one in outcomes if one.status or self._options.batch_ends == "expired"]
            parts = {
                "output_file_id": [one for one in told if one.status == 200],
                "error_file_id": [one for one in told if one.status != 200],
            }
            self._outputs[name] = {
                part: self._keep("".join(json.dumps(_line(one)) + "\n" for one in found).encode())["id"]
                for part, found in parts.items()
                if found
            }
        return self._outputs[name]


def _line(outcome: Outcome) -> dict[str, Any]:
    found = {"id": "emulated", "custom_id": outcome.name}
    if outcome.status is None:
        reason = {"code": "batch_expired", "message": "This request could not be executed in time."}
        return found | {"response": None, "error": reason}
    reply = {"status_code": outcome.status, "request_id": "emulated", "body": outcome.body}
    return found | {"response": reply, "error": None}
