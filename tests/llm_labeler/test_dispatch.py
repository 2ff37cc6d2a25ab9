"""Every question gets an answer or a failure, and every call is charged."""

import asyncio
from dataclasses import replace

from llm_labeler import CallFailed
from llm_labeler.dispatch.budget import Spending
from llm_labeler.records import LlmReply
from pairkit import AuthError, Progress
from tests.support.shorthand import config_error, parametrize, raises, remote_error

from .scripted_provider import (
    ACTUAL,
    BOUND,
    Scripted,
    an_ask,
    answer_at_once,
    answers_in,
    ask_in,
    asked,
    fails,
    run,
)

# Of one call at 1 and 2 dollars per million tokens.
PICO_ACTUAL = 80 * 1_000_000 + 20 * 2_000_000
PICO_BOUND = 100 * 1_000_000 + 50 * 2_000_000


def test_llms_run_concurrently_and_each_answer_is_stored_and_charged(store):
    quick, slow = (
        Scripted(name="quick", latency_s=0.1),
        Scripted(name="slow", latency_s=100.0),
    )
    outcome = asked(store, quick, slow, count=40)
    assert quick.starts[-1] < 2
    assert slow.starts[-1] > 800
    assert (outcome.done, outcome.failed, outcome.cached, outcome.stopped_by) == (
        80,
        0,
        0,
        None,
    )
    asks = [an_ask(number, llm) for llm in ("quick", "slow") for number in range(40)]
    assert {a.key: a.reply.raw for a in answers_in(store)} == {
        a.key: f"answer to {a.text}" for a in asks
    }
    assert {(a.reply.usage, a.cost, a.estimated) for a in answers_in(store)} == {
        (ACTUAL, 0.00012, False)
    }
    each = Spending(40, 3200, 800, 40 * PICO_ACTUAL)
    assert store.spent_by_llm() == {"quick": each, "slow": each}
    assert outcome.spent == store.spent() == each + each


def test_retries_back_off(store):
    script = fails(CallFailed("timeout", ""), lambda ask, attempt: attempt < 6)
    provider = Scripted(script, attempts=6)
    assert asked(store, provider, count=1).done == 1
    gaps = [
        late - early
        for early, late in zip(provider.starts, provider.starts[1:], strict=False)
    ]
    assert all(
        longest / 2 <= gap <= longest
        for gap, longest in zip(gaps, (0.5, 1, 2, 4, 8), strict=True)
    )
    busy = CallFailed("server_error", "503", retry_after_s=40)
    patient = Scripted(fails(busy, lambda ask, attempt: attempt == 1), name="patient")
    asked(store, patient, count=1)
    assert patient.starts == [0, 40]


def test_a_waiting_retry_blocks_no_calls(store):
    script = fails(
        CallFailed("server_error", "503", retry_after_s=0.6),
        lambda ask, attempt: int(ask.text) % 10 == 0 and attempt == 1,
    )
    provider = Scripted(script, concurrency=10, latency_s=0.2)
    asked(store, provider, count=1000)
    assert provider.starts[-1] < 1100 * 0.2 / 10 * 1.1  # 22 s is optimal


def test_failures_are_stored_and_the_run_continues(store):
    def script(ask, attempt):
        if ask.text == "2":
            return CallFailed("rejected", "too long", retry=False, final=True)
        if ask.text == "4":
            return CallFailed("server_error", "HTTP 500")
        if ask.text == "6":
            return CallFailed("server_error", "HTTP 503", retry_after_s=86_400)
        return answer_at_once(ask, attempt)

    provider = Scripted(script)
    outcome = asked(store, provider, count=10)
    assert (outcome.done, outcome.failed) == (7, 3)
    noted = {f.key: (f.reason, f.detail, f.attempts, f.final) for f in store.failures()}
    assert noted == {
        an_ask(2).key: ("rejected", "too long", 1, True),
        an_ask(4).key: ("server_error", "HTTP 500", 3, False),
        an_ask(6).key: ("server_error", "HTTP 503", 1, False),
    }
    mended = Scripted()
    assert asked(store, mended, count=10).done == 2
    assert an_ask(2).key not in mended.asked
    assert asked(store, mended, count=10, retry_final=True).done == 1
    assert list(store.failures()) == []


AT_BOUND = Spending(1, 100, 50, PICO_BOUND, estimated=1)


@parametrize(
    "reply, charged",
    [
        (LlmReply("x", usage=ACTUAL), Spending(1, 80, 20, PICO_ACTUAL)),
        (LlmReply("x"), AT_BOUND),
        (CallFailed("timeout", "", retry=False, maybe_billed=True), AT_BOUND),
        (CallFailed("connection", "", retry=False), Spending(1)),
        (CallFailed("rate_limited", "", retry=False), Spending(1)),
    ],
)
def test_charges_of_failed_calls(store, reply, charged):
    outcome = asked(store, Scripted(lambda ask, attempt: reply), count=1)
    assert outcome.spent == store.spent() == charged
    assert not store.recover()
    if isinstance(reply, LlmReply):
        answer = store.answer(an_ask(0).key)
        assert answer is not None
        assert answer.estimated == bool(charged.estimated)
        assert answer.reply == replace(
            reply, usage=BOUND if charged.estimated else ACTUAL
        )


def test_refusals_of_all_questions_are_not_final(store):
    def script(ask, attempt):
        if int(ask.text) >= 60:  # an unknown message for a spent credit
            return CallFailed(
                "rejected", f"HTTP 400: see ticket {ask.text}", retry=False
            )
        return answer_at_once(ask, attempt)

    provider = Scripted(script)
    with remote_error(r"refused 1\d consecutive questions .* see ticket"):
        asked(store, provider, count=120)
    assert provider.asked.total() <= 60 + 10 + provider.concurrency
    assert not [failure for failure in store.failures() if failure.final]
    mended = Scripted()
    assert asked(store, mended, count=120).done == 60
    assert list(store.failures()) == []


def test_a_refusal_is_final_once_the_llm_answers_others(store):
    script = fails(
        CallFailed("rejected", "the context is too long", retry=False, final=True),
        lambda ask, attempt: int(ask.text) < 20,
    )
    asked(store, Scripted(script), count=20)
    assert [failure.final for failure in store.failures()] == [False] * 20
    asked(store, Scripted(script), count=25)
    assert [failure.final for failure in store.failures()] == [True] * 20
    late = Scripted(script)
    assert asked(store, late, count=25).cached == 25
    assert not late.asked


def test_an_error_stops_one_llm_and_finishes_calls_in_flight(store):
    script = fails(AuthError("refused key"), lambda ask, attempt: ask.text == "20")
    failing, other = (
        Scripted(script, latency_s=0.1),
        Scripted(name="other", latency_s=5.0, concurrency=3),
    )
    with raises(AuthError, match="refused key"):
        asked(store, failing, other, count=100)
    answered = {answer.key for answer in answers_in(store)}
    assert {an_ask(n).key for n in range(20)} <= answered
    assert (
        len([key for key in answered if key.llm == "tester"])
        == failing.asked.total() - 1
        < 30
    )
    # The others end first.
    assert len([key for key in answered if key.llm == "other"]) == 100
    assert not store.recover()


def test_after_an_error_hanging_calls_are_cancelled(store):
    async def stuck(seconds):
        await asyncio.sleep(seconds)

    class Stuck(Scripted):
        async def reply(self, ask):
            await stuck(0.1 if ask.text == "0" else 1e6)
            raise AuthError("refused")

    with raises(AuthError):
        asked(store, Stuck(concurrency=3), count=3)
    assert store.recover() == 2  # may have been billed
    assert store.spent_by_llm()["tester"] == Spending(
        3, 200, 100, 2 * PICO_BOUND, estimated=2
    )


def test_an_unwritable_store_ends_the_run(store):
    def script(ask, attempt):
        if ask.text == "9":
            store._connection.execute("PRAGMA query_only = ON")
        return answer_at_once(ask, attempt)

    provider = Scripted(script, latency_s=0.1)
    with config_error("fix its permissions"):
        asked(store, provider, count=100)
    assert provider.asked.total() < 20


@parametrize("at_s", [0.0, 0.05, 0.35, 1.0])
def test_cancelling_leaves_the_store_consistent(store, at_s):
    provider = Scripted(latency_s=0.1)

    async def main():
        run_ = asyncio.create_task(ask_in(store, provider, count=1000))
        await asyncio.sleep(at_s)
        run_.cancel()
        with raises(asyncio.CancelledError):
            await run_
        assert len(asyncio.all_tasks()) == 1

    run(main())
    answered = {answer.key for answer in answers_in(store)}
    cut_off = store.recover()
    assert cut_off == len(provider.asked) - len(answered) <= 4
    assert store.spent().requests == provider.asked.total()
    again = Scripted(latency_s=0.1)
    assert asked(store, again, count=1000).done == 1000 - len(answered)
    assert not answered & again.asked.keys()


def test_progress_is_reported_at_intervals_and_at_the_end(store):
    seen = []
    asked(store, Scripted(latency_s=0.01), count=400, progress=seen.append, total=400)
    assert 5 < len(seen) < 15  # 1 s in all
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert any("in flight" in p.note for p in seen)
    assert seen[-1] == Progress(
        "asking", 400, 400, "40,000 tokens, cost $0.0480", ended=True
    )
    asked(store, Scripted(), count=401, progress=seen.append)
    assert seen[-1] == Progress(
        "asking", 401, None, "40,100 tokens, cost $0.0481", ended=True
    )
