"""A test server for commits of small files to the Hub."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest


class Hub(BaseHTTPRequestHandler):
    """Accepts commits of small files and stores all requests."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers["authorization"]))
        self.answer({"id": "me/m", "private": server.private})

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        server.asked.append((self.path, self.headers["authorization"]))
        root = f"http://127.0.0.1:{server.server_port}"
        reply: dict[str, Any] = {}
        if self.path.endswith("/create"):
            server.created.append(json.loads(body))
            reply = {"url": f"{root}/me/m"}
        elif "/preupload/" in self.path:
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            reply = {"files": [{"path": file["path"], **modes} for file in json.loads(body)["files"]]}
        elif "/commit/" in self.path:
            lines = [json.loads(line) for line in body.splitlines()]
            sent = [line["value"] for line in lines if line["key"] == "file"]
            server.files |= {file["path"]: base64.b64decode(file["content"]).decode() for file in sent}
            reply = {"commitUrl": f"{root}/me/m/commit/abc", "commitOid": "a" * 40, "pullRequestUrl": None}
        self.answer(reply)

    def answer(self, reply: dict[str, Any]) -> None:
        server: Any = self.server
        data = json.dumps(reply).encode()
        self.send_response(server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(pytest.importorskip("huggingface_hub.constants"), "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.status, server.private, server.asked, server.created, server.files = 200, True, [], [], {}
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
