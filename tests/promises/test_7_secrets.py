"""Promise 7: a secret is sent only to its own server, and printed or stored nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from tests.contract.conftest import SAMPLE, environment, run_here
from tests.contract.label_command import llms_file, sentences
from tests.support import llm
from tests.support.github import serve

KEYS = {
    "GITHUB_TOKEN": "ghp_" + "abcdEFGH0123" * 3,
    "OPENAI_API_KEY": "sk-of-openai-" + "b" * 30,
    "EMULATED_API_KEY": "the-right-secret-key",
}
COMMANDS = {
    "gis": "gis_builder build --repos quarryhq/quarry --work work --out out --api-url {url}",
    "label": "llm_labeler generate --data texts.txt --config llms.toml --llm llama --out out",
    "aoe": "aoe_train evaluate -m m --endpoint {url} --api-key-env EMULATED_API_KEY --data pairs.csv",
}
OWN_KEY = {
    "gis": "GITHUB_TOKEN",
    "label": "EMULATED_API_KEY",
    "aoe": "EMULATED_API_KEY",
}


class Echo(BaseHTTPRequestHandler):
    """Refuses a request with an error that repeats its credentials."""

    heard: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        credentials = self.headers.get("authorization", "")
        self.heard.append(credentials)
        body = (
            f'{{"message": "{credentials}", "error": {{"message": "{credentials}"}}}}'
        )
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def echo_url() -> Iterator[str]:
    Echo.heard.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def run(command: str, url: str, folder: Path) -> int:
    """The exit code of a command; neither its output nor its files have a key."""
    folder.mkdir(exist_ok=True)
    sentences(folder / "texts.txt", 4)
    llms_file(folder / "llms.toml", {"llama": url}, model="emulated")
    (folder / "pairs.csv").write_text("text1,text2,label\na,b,1\nc,d,0\n")
    package, *arguments = COMMANDS[command].format(url=url).split()
    done = run_here(package, *arguments, cwd=folder, environ=environment(**KEYS))
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for key in KEYS.values():
        assert key not in done.out + done.err
        assert key.encode() not in stored
    return done.code


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_key_is_sent_alone_and_not_shown(
    command: str, echo_url: str, tmp_path: Path
) -> None:
    assert run(command, echo_url, tmp_path) == 4
    assert {credentials.split()[-1] for credentials in Echo.heard} == {
        KEYS[OWN_KEY[command]]
    }


def test_a_result_has_no_key(tmp_path: Path) -> None:
    with serve(SAMPLE) as github:
        assert run("gis", github.url, tmp_path) == 0
    with llm.serve(llm.Options(("emulated",))) as server:
        assert run("label", server.base_url, tmp_path / "label") == 0
