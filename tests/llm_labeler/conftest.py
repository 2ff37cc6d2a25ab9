import pytest

from llm_labeler.dispatch.answer_store import AnswerStore


@pytest.fixture
def store(tmp_path):
    with AnswerStore(tmp_path / "store.sqlite", create=True) as opened:
        yield opened


@pytest.fixture
def short_waits(monkeypatch):
    """Repeat failed calls at once."""
    monkeypatch.setattr("llm_labeler.dispatch.workers._MIN_BACKOFF_S", 0.001)
    monkeypatch.setattr("llm_labeler.dispatch.limits._MIN_PAUSE_S", 0.001)


@pytest.fixture
def small_shards(monkeypatch):
    """Write files of 12 rows."""
    monkeypatch.setattr("llm_labeler.dataset.dataset_rows.SHARD_ROWS", 12)


@pytest.fixture
def out(tmp_path):
    """Where a test writes its dataset."""
    return tmp_path / "out"
