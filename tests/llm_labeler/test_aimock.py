"""The provider against another project's mock server, whose faults are not of our making."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from llm_labeler.emulator import Faults, serve
from tests.llm_labeler.llm_server import an_ask, provider, replies, run

PACKAGE = "@copilotkit/aimock"
CHAOS = ("--chaos-ratelimit", "0.3", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.1")
_URL = re.compile(r"http://127\.0\.0\.1:\d+")


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, installed for these tests alone."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("aimock")
    command = [npm, "install", PACKAGE, "--prefix", str(folder), "--no-fund", "--no-audit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm can't install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return folder / "node_modules" / ".bin" / "llmock"


@contextmanager
def served(program: Path, folder: Path, count: int, *chaos: str) -> Iterator[str]:
    fixtures = [
        {"match": {"userMessage": f"Patient {number} is"}, "response": {"content": f"1. Answer {number}"}}
        for number in range(count)
    ]
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    log = (folder / "log").open("w+")
    flags = ["--port", "0", "--fixtures", str(file), "--journal-max", "0", *chaos]
    child = subprocess.Popen([str(program), *flags], stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(200):
            if found := _URL.search((folder / "log").read_text()):
                break
            time.sleep(0.05)
        else:
            raise AssertionError((folder / "log").read_text())
        yield found[0]
    finally:
        child.terminate()
        child.wait(timeout=10)
        log.close()


@pytest.mark.slow
def test_faults_of_another_make_lose_nothing_and_repeat_nothing(aimock: Path, tmp_path: Path) -> None:
    count = 500
    with served(aimock, tmp_path, count, *CHAOS) as url:
        asked = provider(f"{url}/v1", concurrency=16, timeout_s=5.0)
        found = run(replies(asked, map(an_ask, range(count))))
        journal = requests.get(f"{url}/v1/_requests", timeout=10).json()
    assert [reply.raw for reply in found] == [f"1. Answer {number}" for number in range(count)]
    assert all(reply.usage for reply in found)
    answered = Counter(
        entry["body"]["messages"][-1]["content"]
        for entry in journal
        if entry["response"]["status"] == 200 and not entry["response"].get("chaosAction")
    )
    assert len(answered) == answered.total() == count
    failed = Counter(entry["response"].get("chaosAction") for entry in journal)
    assert {"rateLimit", "malformed", "disconnect"} <= set(failed)
    assert len(journal) > 1.5 * count


def test_the_same_faults_of_our_make() -> None:
    kinds = ("rate_limited", "rate_limited", "rate_limited", "broken_json", "disconnect")
    with serve(faults=Faults(0.5, kinds, seed=2)) as server:
        found = run(replies(provider(server.base_url), map(an_ask, range(200))))
        assert len({reply.raw for reply in found}) == 200
        assert server.stats.asked_again == 0
        assert server.stats.requests > 300
