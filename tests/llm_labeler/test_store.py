"""The store of answers, failures, batches and spending."""

import tracemalloc
from dataclasses import replace

import pytest

from llm_labeler.dispatch.answer_store import SubmittedBatch
from llm_labeler.dispatch.budget import Spending
from llm_labeler.records import AskKey, LlmReply, StoredAnswer, TokenUsage
from pairkit import DataError

KEY = AskKey("t1", "chatgpt", "positive", "p1", "q1")


def an_answer(key=KEY, raw="1. hello", **changes):
    reply = LlmReply(raw, "stop", TokenUsage(10, 5), "gpt")
    return replace(StoredAnswer(key, reply, 0.25), **changes)


def key_of(number, **changes):
    return replace(KEY, text_id=f"{number:04}", **changes)


def test_a_slow_reader_does_not_block_checkpoints(store):
    """Proposals are read for hours while judges answer; one long read transaction would grow the log."""
    for number in range(300):
        store.save_answer(an_answer(key_of(number)))
    reader = store.answers(["positive"], (f"{number:04}" for number in range(300)))
    next(reader)
    for number in range(1000):
        key = key_of(number, task="judge")
        store.save_answer(an_answer(key), store.begin(key, TokenUsage(1, 1), 0.0))
    assert store.path.with_name(f"{store.path.name}-wal").stat().st_size < 8 << 20
    assert sum(1 for _ in reader) == 299


BATCH = SubmittedBatch(
    "chatgpt",
    "b1",
    "validating",
    {"c1": KEY, "c2": key_of(2)},
    TokenUsage(200, 100),
    4.0,
)


def test_a_failed_collection_changes_nothing(store):
    def answers():
        yield an_answer()
        raise KeyboardInterrupt

    store.save_batch(BATCH)
    with pytest.raises(KeyboardInterrupt):
        store.collect_batch(BATCH, answers(), [])
    assert store.batches() == [BATCH]
    assert store.answer(KEY) is None
    store.delete_batch("b1")
    assert store.spent() == Spending()


def test_an_answer_and_its_charge_are_one_transaction(store):
    attempt = store.begin(KEY, TokenUsage(100, 50), 2.0)
    store._connection.execute("DROP TABLE spending")
    with pytest.raises(DataError):
        store.save_answer(an_answer(), attempt)
    assert store.answer(KEY) is None


def test_memory_does_not_grow_with_the_number_of_answers(store):
    raw = "x" * 100_000
    for number in range(300):
        store.save_answer(an_answer(key_of(number), raw=raw))
    texts = [f"{number:04}" for number in range(300)]
    tracemalloc.start()
    answers = store.answers(["positive"], texts)
    assert sum(answer.reply.raw == raw for answer in answers) == 300
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000, f"{peak} bytes for reading 30 MB"
