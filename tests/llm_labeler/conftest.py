from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore.open(tmp_path / "store.sqlite", create=True) as opened:
        yield opened


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat failed calls at once."""
    monkeypatch.setattr("llm_labeler.dispatch.workers._MIN_BACKOFF_S", 0.001)
    monkeypatch.setattr("llm_labeler.dispatch.limits._MIN_PAUSE_S", 0.001)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files of 12 rows."""
    monkeypatch.setattr("llm_labeler.dataset.label_card.SHARD_ROWS", 12)
