from __future__ import annotations

import os

import pytest

from pairkit.cores import cores


def test_only_those_count_that_the_process_may_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    assert cores() == 3


@pytest.mark.parametrize(("counted", "expected"), [(12, 12), (None, 1)])
def test_where_none_can_be_told_from_others_all_count(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert cores() == expected
