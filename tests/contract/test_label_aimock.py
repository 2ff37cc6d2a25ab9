"""The ensemble against three servers of another make that fail half of all calls."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from tests.contract.label_command import MEMBERS, generate, llms_file, sentences
from tests.llm_labeler.aimock import CHAOS, answered, install, served

TEXTS = 1000


@pytest.mark.slow
def test_a_thousand_sentences_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    source = sentences(tmp_path / "s.txt", TEXTS)
    program = install(tmp_path / "npm")
    before = "sentences of a given input sentence. Input sentence: "
    with ExitStack() as stack:
        urls = {}
        for name in MEMBERS:
            answers = {}
            for line in source.read_text().splitlines():
                answers[f"synonymous {before}{line}"] = f"1. {name} would say that {line}"
                answers[f"antonym {before}{line}"] = f"1. {name} denies that {line}"
            urls[name] = stack.enter_context(served(program, tmp_path / name, answers, *CHAOS))
        config = llms_file(
            tmp_path / "l.toml",
            {name: f"{url}/v1" for name, url in urls.items()},
            timeout_s=60.0,
            model="gpt-4o",
        )
        flags = ("--prompt", "paper", "--size", "1", "--llm", "ensemble", "--config", config)
        done = generate(source, tmp_path / "out", *flags)
        journals = {
            name: requests.get(f"{url}/v1/_requests", timeout=60).json() for name, url in urls.items()
        }
    assert done.code == 0, done.err
    assert (done.result["texts"], done.result["pairs"]) == (TEXTS, 2 * TEXTS * len(MEMBERS))
    for journal in journals.values():
        good = answered(journal)
        assert len(good) == good.total() == 2 * TEXTS
        assert len(journal) > 3 * TEXTS
