"""Asking in the order of its stages: what a failure of the first means for the second, and what is spent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import llm_labeler
from llm_labeler.clients.llms import build
from llm_labeler.dispatch.answers import AnswerStore, SubmittedBatch
from llm_labeler.records import CallFailed, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError, DataError, RemoteError
from pairkit.openai_api.channel import Channel
from pairkit.openai_api.refusals import NoAnswer

TEXTS = ["The nurse takes a pill.", "A doctor drinks cold water."]


def answering(name: str, *failures: CallFailed) -> Callable[[str], str]:
    """An LLM that proposes and confirms; the failures come first, in answer to the first sentence."""
    left = [*failures]

    def llm(prompt: str) -> str:
        if "Sentence: " not in prompt:
            return json.dumps({str(number): "same" for number in range(1, 9)})
        if "nurse" in prompt and left:
            raise left.pop(0)
        return f"1. It is so, {name} says.\n2. So {name} says it is."

    return llm


def generate(out: Path, *failures: CallFailed, texts: list[str] = TEXTS, **more: Any) -> llm_labeler.Labelled:
    llms = {"ann": answering("ann", *failures), "bob": answering("bob")}
    given = {"polarity": "positive", "progress": False, **more}
    return llm_labeler.generate(texts, llms=llms, out=out, strategy="vote", **given)


def test_judges_are_asked_though_a_question_was_rejected_for_good(tmp_path: Path) -> None:
    rejected = CallFailed("rejected", "against the rules", retry=False, final=True)
    made = generate(tmp_path / "out", rejected)
    assert made.dropped["answer_rejected"] == 1
    assert made.positives > 0
    assert "not_judged" not in made.dropped


def test_judges_wait_until_all_is_proposed(tmp_path: Path) -> None:
    passing = CallFailed("rejected", "not now", retry=False)
    with pytest.raises(RemoteError, match=r"no answer to 1 questions \(rejected 1: not now\)"):
        generate(tmp_path / "out", passing)
    report = llm_labeler.report(tmp_path / "out.work")
    assert (report.failures, report.llms["bob"].kept) == ({"rejected": 1}, 4)
    assert "not_judged" not in generate(tmp_path / "out").dropped


def test_proposals_leave_judges_a_part_of_the_budget(tmp_path: Path) -> None:
    texts = [f"The nurse takes pill number {number}." for number in range(20)]
    made = generate(tmp_path / "out", texts=texts, max_requests=40)
    assert made.asked.stopped == "max_requests"
    assert made.spent.requests >= 36
    assert 36 <= made.positives <= 40  # 4 a text, for 2 questions and 2 to the judges
    command = f"`label parse --work {made.work} --out {made.out}-unjudged --strategy union`"
    assert any(command in line for line in made.messages)
    rest = generate(tmp_path / "out", texts=texts)
    assert (rest.positives, rest.asked.stopped) == (80, None)
    assert generate(tmp_path / "enough", texts=texts, max_requests=80).asked.stopped is None
    with pytest.raises(DataError, match=r"no pair is left .*`label parse .* --strategy union`"):
        generate(tmp_path / "few", texts=texts, max_requests=2, polarity="negative")


def test_no_question_is_asked_beside_the_batch_that_holds_it(tmp_path: Path) -> None:
    made = generate(tmp_path / "out")
    with AnswerStore.open(made.work / "answers.sqlite") as store:
        (answer, *_) = store.answers(("positive",))
        store.save_batch(
            SubmittedBatch("ann", "batch_1", "in_progress", {"a": answer.key}, TokenUsage(10, 10), None)
        )
    with pytest.raises(
        ConfigError, match=r"1 questions wait in a batch of ann .* batch \(--batch\), or give"
    ):
        generate(tmp_path / "out")
    before = made.spent_in_all.requests
    assert generate(tmp_path / "out", retry_failed=True).spent_in_all.requests == before + 1
    assert generate(tmp_path / "out").spent.requests == 0


def of_ensemble(out: Path, *members: str, **more: Any) -> llm_labeler.Labelled:
    settings = {"ensemble.members": [*members], "llm.llama.base_url": "http://127.0.0.1:9/v1"}
    return llm_labeler.generate(TEXTS, llms="ensemble", out=out, settings=settings, progress=False, **more)


def test_the_ensemble_asks_those_that_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = of_ensemble(tmp_path / "out", "chatgpt", "llama", "wordnet")
    assert made.positives > 0
    assert made.problem is None
    lines = [line for line in made.messages if line.startswith("ensemble: ")]
    assert [line.split(" is left out: ")[0] for line in lines] == ["ensemble: chatgpt", "ensemble: llama"]
    assert "start the server" in lines[1]


def test_only_a_server_of_ones_own_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def get(*_: object) -> bytes:
        raise NoAnswer("connection", "no route to host", was_sent=False)

    monkeypatch.setattr(Channel, "get", get)
    far = LlmSettings(kind="openai_compatible", model="m", base_url="https://llm.example/v1")
    with pytest.raises(RemoteError, match="check the network, or set base_url"):
        asyncio.run(build("far", far).check())


def test_an_ensemble_that_can_not_do_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"2 LLMs can't be asked: .*OPENAI_API_KEY.*; llm llama"):
        of_ensemble(tmp_path / "none", "chatgpt", "llama")
    with pytest.raises(ConfigError, match="wordnet alone would be asked: no pair could come"):
        of_ensemble(tmp_path / "vote", "chatgpt", "llama", "wordnet", strategy="vote")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        of_ensemble(tmp_path / "named", "wordnet", "chatgpt", judges="chatgpt", strategy="vote")


def test_an_error_of_one_llm_is_not_hidden_by_the_end_of_the_others(tmp_path: Path) -> None:
    async def waits(prompt: str) -> str:
        await asyncio.sleep(60)
        return ""

    def breaks(prompt: str) -> str:
        raise ZeroDivisionError("of mine")

    with pytest.raises(ZeroDivisionError, match="of mine"):
        llm_labeler.generate(TEXTS, llms=[waits, breaks], out=tmp_path / "out", progress=False)
