from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnswerStore]:
    with AnswerStore.open(tmp_path / "store.sqlite", create=True) as opened:
        yield opened
