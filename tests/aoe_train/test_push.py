from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants
from typer.testing import CliRunner

import aoe_train._commands.push
from aoe_train._commands.app import app
from aoe_train._export.hub import listing, push
from pairkit.errors import AuthError, ConfigError, DataError, RemoteError

FILES = {"README.md": "# A model\n", "run.json": "{}\n", "1_Pooling/config.json": '{"a": 1}\n'}


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as takes a commit of small files: it remembers what it was sent."""

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
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.status, server.asked, server.created, server.files = 200, [], [], {}
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_text(text)
    (tmp_path / "m/.hidden").write_text("not sent")
    return tmp_path / "m"


def test_every_file_arrives_in_one_commit(hub: Any, model: Path) -> None:
    assert push(model, "me/m", private=True, endpoint=hub.url) == f"{hub.url}/me/m/commit/abc"
    assert hub.files == FILES
    assert hub.created == [{"name": "m", "organization": "me", "visibility": "private"}]
    assert [path for path, _ in hub.asked if "/commit/" in path] == ["/api/models/me/m/commit/main"]
    assert {token for _, token in hub.asked} == {"Bearer hf_secret"}


def test_a_branch(hub: Any, model: Path) -> None:
    push(model, "me/m", revision="v2", endpoint=hub.url)
    assert "/api/models/me/m/branch/v2" in [path for path, _ in hub.asked]
    assert "/api/models/me/m/commit/v2" in [path for path, _ in hub.asked]
    assert "visibility" not in hub.created[0]


@pytest.mark.parametrize(
    ("status", "error", "named"),
    [
        (401, AuthError, "refused the token"),
        (403, AuthError, "right to write"),
        (400, RemoteError, "hub answered"),
    ],
)
def test_refusals(hub: Any, model: Path, status: int, error: type[Exception], named: str) -> None:
    hub.status = status
    with pytest.raises(error, match=named):
        push(model, "me/m", endpoint=hub.url)
    assert hub.files == {}


def test_no_token(hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(AuthError, match="HF_TOKEN"):
        push(model, "me/m", endpoint=hub.url)
    assert hub.asked == []


def test_nobody_there(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(RemoteError, match="can't be reached"):
        push(model, "me/m", endpoint="http://127.0.0.1:9")


def test_offline(hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    with pytest.raises(RemoteError, match="offline"):
        push(model, "me/m", endpoint=hub.url)
    huggingface_hub.close_session()
    assert hub.asked == []


def test_no_name_of_a_repository(hub: Any, model: Path) -> None:
    with pytest.raises(ConfigError, match="owner/name"):
        push(model, "a/b/c", endpoint=hub.url)


@pytest.mark.parametrize("missing", ["README.md", "run.json"])
def test_a_model_must_say_what_it_is(model: Path, missing: str) -> None:
    (model / missing).unlink()
    with pytest.raises(DataError, match=missing):
        listing(model)


def test_dry_run_lists_and_sends_nothing(model: Path) -> None:
    assert aoe_train._commands.push.push.__doc__
    flags = ["push", "--model", str(model), "--repo", "me/m", "--dry-run"]
    found = CliRunner().invoke(app, flags, catch_exceptions=False)
    assert found.exit_code == 0
    found = CliRunner().invoke(app, [*flags, "--json"], catch_exceptions=False)
    said = json.loads(found.stdout.splitlines()[-1])
    assert said["files"] == {name: len(text) for name, text in FILES.items()}
    assert said["url"] is None
