"""npm's aimock: a mock server of another project, whose faults are not of our making."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "@copilotkit/aimock"
CHAOS = ("--chaos-ratelimit", "0.3", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.1")
_URL = re.compile(r"http://127\.0\.0\.1:\d+")


def install(folder: Path) -> Path:
    """The program; skips where it can't be had."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    command = [npm, "install", PACKAGE, "--prefix", str(folder), "--no-fund", "--no-audit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm can't install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return folder / "node_modules" / ".bin" / "llmock"


@contextmanager
def served(program: Path, folder: Path, answers: Mapping[str, str], *chaos: str) -> Iterator[str]:
    """A server that answers a message with a key of `answers` in it; its URL."""
    fixtures = [
        {"match": {"userMessage": words}, "response": {"content": answer}}
        for words, answer in answers.items()
    ]
    folder.mkdir(exist_ok=True)
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
        child.wait(timeout=60)
        log.close()


def answered(journal: list[dict[str, Any]]) -> Counter[str]:
    """How often each message was answered well."""
    return Counter(
        entry["body"]["messages"][-1]["content"]
        for entry in journal
        if entry["response"]["status"] == 200 and not entry["response"].get("chaosAction")
    )
