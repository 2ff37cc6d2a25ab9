"""Files and batches: requests handed in together and answered later, in another order."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from llm_labeler._emulator.chat import Chat, error, refused
from llm_labeler._emulator.http import Request, Response, json_response
from llm_labeler._emulator.options import Options
from llm_labeler._emulator.stats import Stats

_BOUNDARY = re.compile(r'boundary="?([^";]+)')
_MOST_LINES = 50_000


class Batches:
    """The Batch API; everything is lost with the server."""

    def __init__(self, chat: Chat, options: Options, stats: Stats) -> None:
        self._chat, self._options, self._stats = chat, options, stats
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, dict[str, Any]] = {}  # oldest first

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
            case ("GET", "batches", name) if name in self._batches:
                return json_response(self._now(self._batches[name]))
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
        lines = content.splitlines()
        if len(lines) > _MOST_LINES:
            return error(400, "too many requests in the file")
        self._stats.batches += 1
        batch = {
            "id": f"batch_{len(self._batches) + 1}",
            "object": "batch",
            "endpoint": body.get("endpoint"),
            "input_file_id": body["input_file_id"],
            "completion_window": body.get("completion_window"),
            "created_at": int(time.time()),
            "status": "in_progress",
            "metadata": body.get("metadata") or {},
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "ready": time.monotonic() + self._options.batch_s,
        }
        self._batches[str(batch["id"])] = batch
        return json_response(self._now(batch))

    def _list(self, query: Mapping[str, str]) -> Response:
        newest = list(reversed(self._batches.values()))
        names = [batch["id"] for batch in newest]
        start = names.index(query["after"]) + 1 if query.get("after") in names else 0
        page = newest[start : start + int(query.get("limit", "20"))]
        has_more = start + len(page) < len(newest)
        return json_response(
            {"object": "list", "data": [self._now(batch) for batch in page], "has_more": has_more}
        )

    def _now(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch as it is shown, worked through if its time has come."""
        if batch["status"] == "in_progress" and time.monotonic() >= batch["ready"]:
            self._finish(batch)
        return {name: value for name, value in batch.items() if name != "ready"}

    def _finish(self, batch: dict[str, Any]) -> None:
        batch["status"] = ends = self._options.batch_ends
        if ends == "failed":
            batch["errors"] = {"data": [{"code": "invalid_json_line", "line": 1, "message": "emulated"}]}
            return
        lines = [json.loads(line) for line in self._files[batch["input_file_id"]].splitlines()]
        done = lines if ends == "completed" else lines[::2]
        output: list[dict[str, Any]] = []
        errors = [_left_out(line) for line in lines[1::2]] if ends == "expired" else []
        for line in reversed(done):
            status, body = self._line(line["body"])
            reply = {"status_code": status, "request_id": "emulated", "body": body}
            answered = {"id": "emulated", "custom_id": line["custom_id"], "response": reply, "error": None}
            (output if status == 200 else errors).append(answered)
        batch["request_counts"] |= {"completed": len(output), "failed": len(errors)}
        for name, found in (("output_file_id", output), ("error_file_id", errors)):
            if found:
                batch[name] = self._keep("".join(json.dumps(line) + "\n" for line in found).encode())["id"]

    def _line(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        response = refused(400, body, self._options) or self._chat.reply(body)
        try:
            return response.status, json.loads(response.body)
        except ValueError:  # a fault of the wire: the Batch API has no wire of its own
            return 500, {"error": {"message": "The server had an error."}}


def _left_out(line: Mapping[str, Any]) -> dict[str, Any]:
    reason = {"code": "batch_expired", "message": "This request could not be executed in time."}
    return {"id": "emulated", "custom_id": line["custom_id"], "response": None, "error": reason}
