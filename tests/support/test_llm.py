from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import requests

from llm_labeler.records import VOTES
from llm_labeler.runs.prompts import load_template
from llm_labeler.settings import PromptSettings
from tests.support.llm import FAULT_KINDS, PASSING, Faults, Options, Server, serve
from tests.support.llm.answers import answer

PROMPT = "Generate 4 synonymous sentences. Input sentence: The heart beats fast. Output:"


def body(prompt: str = PROMPT, **fields: Any) -> dict[str, Any]:
    return {"model": "emulated", "messages": [{"role": "user", "content": prompt}], **fields}


def post(server: Server, asked: Any = None, **headers: str) -> requests.Response:
    value = body() if asked is None else asked
    return requests.post(f"{server.base_url}/chat/completions", json=value, headers=headers, timeout=60)


def messages(system: str, user: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


@pytest.mark.parametrize("name", ["paper", "hardened"])
@pytest.mark.parametrize("text", ["The heart beats fast", 'He said "no", 3 times', "心臓", "a"])
def test_it_answers_our_own_prompts_with_as_many_different_sentences_as_asked(name: str, text: str) -> None:
    template = load_template(PromptSettings(template=name))
    found = {}
    for polarity in ("positive", "negative"):
        asked = [{"role": m.role, "content": m.content} for m in template.messages(text, 7, polarity)]
        lines = answer("m", asked).split("\n")
        assert [line.split(". ")[0] for line in lines] == [str(number) for number in range(1, 8)]
        found[polarity] = {line.partition(". ")[2] for line in lines}
        assert len(found[polarity]) == 7
        assert all(set(text.split()) <= set(line.split()) for line in found[polarity])
    assert not found["positive"] & found["negative"]


def test_equal_questions_get_equal_answers_and_models_agree_in_part() -> None:
    asked = [{"role": "user", "content": PROMPT}]
    assert answer("a", asked) == answer("a", asked)
    three = [answer(model, [{"role": "user", "content": PROMPT.replace("4", "3")}]) for model in "abcdef"]
    assert len(set(three)) > 1


def test_a_judge_knows_its_own_kind() -> None:
    sentences = {"1": "In other words, fast", "2": "It is not so that fast", "3": "beats"}
    user = json.dumps({"text": "fast", "sentences": sentences})
    asked = messages("same, opposite, unrelated or unsure?", user)
    assert answer("m", asked) == "1. same\n2. opposite\n3. same"
    words = {"type": "string", "enum": list(VOTES)}
    schema = {"type": "object", "properties": dict.fromkeys(sentences, words)}
    assert json.loads(answer("m", asked, schema)) == {"1": "same", "2": "opposite", "3": "same"}


def test_a_key_a_model_and_a_path() -> None:
    with serve(Options(api_key="sk-1")) as server:
        assert post(server).status_code == 401
        assert post(server, Authorization="Bearer sk-2").json()["error"]["code"] == "invalid_api_key"
        assert post(server, Authorization="Bearer sk-1").ok
        unknown = post(server, body() | {"model": "gpt"}, Authorization="Bearer sk-1")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
        assert server.stats.requests == 1
    with serve() as server:
        assert requests.get(f"{server.base_url}/nothing", timeout=60).status_code == 404
        glm = requests.post(f"{server.url}/api/paas/v4/chat/completions", json=body(), timeout=60)
        assert glm.ok


@pytest.mark.parametrize("odd", [[], {}, {"model": "emulated"}, body() | {"messages": []}, "x", None])
def test_what_is_no_request(odd: Any) -> None:
    with serve() as server:
        url = f"{server.base_url}/chat/completions"
        response = requests.post(url, data=json.dumps(odd), timeout=60)
        assert response.status_code in (400, 404)
        assert response.json()["error"]["message"]
        assert requests.post(url, data=b"{", timeout=60).status_code == 400
        assert post(server).ok


def test_faults_depend_on_the_question_and_its_attempt_alone() -> None:
    faults = Faults(0.3, seed=5)
    drawn = {(q, n): faults.strikes(str(q), n) for q in range(500) for n in range(1, 5)}
    assert drawn == {(q, n): faults.strikes(str(q), n) for q, n in reversed(drawn)}
    struck = [kind for kind in drawn.values() if kind]
    assert 520 < len(struck) < 680  # 600 of 2,000; sigma is 20
    assert set(struck) == set(PASSING)
    assert Faults(0.3, seed=6).strikes("1", 1) != faults.strikes("1", 1) or any(
        Faults(0.3, seed=6).strikes(str(q), 1) != faults.strikes(str(q), 1) for q in range(50)
    )
    first = Faults(1.0, ("html",), first=2)
    assert [first.strikes("q", attempt) for attempt in (1, 2, 3)] == ["html", "html", None]
    assert Faults().strikes("q", 1) is None


@pytest.mark.parametrize("kind", [kind for kind in FAULT_KINDS if kind not in ("hang", "disconnect")])
def test_each_fault_and_then_the_answer(kind: Any) -> None:
    with serve(faults=Faults(1.0, (kind,), first=1, retry_after_s=7)) as server:
        faulty, good = post(server), post(server)
        assert faulty.content != good.content
        if kind in ("rate_limited", "unavailable"):
            assert faulty.headers["retry-after"] == "7"
        assert server.stats.faults == {kind: 1}
        answered = kind in ("no_usage", "refusal", "cut")
        assert server.stats.answered == 1 + answered
        assert server.stats.asked_again == answered


@pytest.mark.parametrize("kind", ["hang", "disconnect"])
def test_faults_of_the_connection(kind: Any) -> None:
    with serve(faults=Faults(1.0, (kind,), first=1)) as server:
        with pytest.raises(requests.RequestException):
            requests.post(f"{server.base_url}/chat/completions", json=body(), timeout=0.2)
        assert post(server).ok


def test_as_a_process() -> None:
    command = [sys.executable, "-m", "tests.support.llm", "--models", "a,b"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url = child.stdout.readline().strip()
        response = requests.post(f"{url}/chat/completions", json=body() | {"model": "b"}, timeout=60)
        assert response.json()["model"] == "b"
        child.terminate()
        assert child.wait() == 0
