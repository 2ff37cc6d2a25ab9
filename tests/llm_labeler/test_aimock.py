"""The provider against another project's mock server, whose faults are not of our making."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import requests

from tests.llm_labeler.aimock import CHAOS, answered, install, served
from tests.llm_labeler.llm_server import an_ask, provider, replies, run
from tests.support.llm import Faults, serve


@pytest.mark.slow
def test_faults_of_another_make_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    count = 500
    answers = {f"Patient {number} is": f"1. Answer {number}" for number in range(count)}
    with served(install(tmp_path / "npm"), tmp_path, answers, *CHAOS) as url:
        asked = provider(f"{url}/v1", concurrency=16, timeout_s=60.0)
        found = run(replies(asked, map(an_ask, range(count))))
        journal = requests.get(f"{url}/v1/_requests", timeout=60).json()
    assert [reply.raw for reply in found] == [f"1. Answer {number}" for number in range(count)]
    assert all(reply.usage for reply in found)
    good = answered(journal)
    assert len(good) == good.total() == count
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
