"""`label` as people run it: a process, and LLMs behind emulated servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.contract.conftest import Done, run_module
from tests.support.llm import Server

MEMBERS = ("chatgpt", "llama", "chatglm")


def environment(keys: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anybody's keys."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, **(keys or {})}


def run_label(
    *arguments: str, keys: Mapping[str, str] | None = None, cwd: Path | None = None, timeout_s: float = 180
) -> Done:
    return run_module("llm_labeler", *arguments, environ=environment(keys), cwd=cwd, timeout_s=timeout_s)


def killed_at(arguments: list[str], servers: list[Server], calls: int, *, keys: Mapping[str, str]) -> bool:
    """Kill a command once servers were called so often; whether it was still at work."""
    most = sum(server.stats.requests for server in servers) + calls
    process = subprocess.Popen(
        [sys.executable, "-m", "llm_labeler", *arguments],
        env=environment(keys),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and sum(server.stats.requests for server in servers) < most:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def llms_file(path: Path, urls: Mapping[str, str], **more: Any) -> Path:
    """A configuration that puts each LLM at an address."""
    settings = {
        "price_in": 1.0,
        "price_out": 2.0,
        "api_key_env": "EMULATED_API_KEY",
        **more,
    }
    lines = []
    for name, url in urls.items():
        lines += [f"[llm.{name}]", 'kind = "openai_compatible"', f'base_url = "{url}"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in {"model": name, **settings}.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sentences(path: Path, number: int) -> Path:
    """A file of different plain sentences."""
    things = ("The nurse", "A doctor", "My aunt", "The child", "Every patient", "An old man", "Her brother")
    deeds = ("takes a pill", "drinks cold water", "walks slowly", "has a fever", "sleeps badly", "eats fruit")
    times = ("in the morning", "before lunch", "at night", "after work", "on Monday", "when it rains")
    lines = [
        f"{things[n % 7]} {deeds[n // 7 % 6]} {times[n // 42 % 6]} for {n // 252 + 2} weeks."
        for n in range(number)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a dataset."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
