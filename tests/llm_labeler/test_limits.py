"""TokenBucket, limiter and breaker, in virtual time."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_labeler import CallFailed
from llm_labeler.dispatch.limits import MAX_WAIT_S, Breaker, RateLimiter, TokenBucket
from llm_labeler.settings import BreakerSettings
from pairkit import RateLimited, RemoteError
from tests.support.shorthand import (
    approx,
    each_line,
    parametrize,
    raises,
    remote_error,
    text_table,
    values,
)

from .scripted_provider import Scripted, answer_at_once, asked, fails, run


def most_in_a_minute(starts, amounts=None):
    amounts = amounts or [1.0] * len(starts)
    return max(
        sum(
            amount
            for at, amount in zip(starts, amounts, strict=True)
            if begin <= at < begin + 60
        )
        for begin in starts
    )


@settings(max_examples=40)
@given(
    per_minute=st.integers(1, 3000),
    amounts=st.one_of(
        st.just([1.0]), st.lists(st.floats(0.1, 100), min_size=1, max_size=5)
    ),
    idle=st.lists(st.floats(0, 5), max_size=5),
    late=st.lists(st.floats(0, 0.2), min_size=1, max_size=5),
)
@example(per_minute=6000, amounts=[900.0, *[500.0] * 10, 900.0], idle=[], late=[0.0])
def test_no_minute_exceeds_the_limit(per_minute, amounts, idle, late):
    bucket, now = TokenBucket(per_minute), 0.0
    starts = []
    used = []
    for number in range(min(400, 3 * per_minute)):
        amount = min(per_minute, amounts[number % len(amounts)])
        while (wait_s := bucket.wait_s(now, amount)) > 0:
            now += wait_s + late[number % len(late)]
        if number and number % 50 == 0 and idle:
            now += idle.pop()
        bucket.start(now, amount)
        starts.append(now)
        used.append(amount)
    assert most_in_a_minute(starts, used) <= per_minute + 1e-6


def test_a_call_beyond_the_limit_of_a_minute_starts_after_a_minute_without_calls():
    bucket = TokenBucket(100)
    bucket.start(0.0, 500.0)
    assert bucket.wait_s(0.0, 500.0) > 60
    assert bucket.wait_s(301.0, 500.0) <= 0


@parametrize(
    "counted, amount, now, wait_s",
    [
        [float(cell) for cell in row]
        for row in text_table("""
            90 | 10 | 55 | 0
            # more than 100 in the minute
            90 | 20 | 55 | 5.1
            90 | 20 | 61 | 0
            10 | 80 | 55 | 0
            10 | 95 | 55 | 5.1
            10 | 95 | 30 | 30.1
        """)
    ],
)
def test_corrected_amounts_count_in_their_minute(counted, amount, now, wait_s):
    bucket = TokenBucket(100)
    bucket.correct(bucket.start(0.0, 50.0), counted)
    assert max(0.0, bucket.wait_s(now, amount)) == approx(wait_s)


def test_a_late_correction_delays_the_next_start_only_by_its_spacing():
    bucket = TokenBucket(100)
    early = bucket.start(0.0, 10.0)
    bucket.start(50.0, 10.0)
    assert bucket.wait_s(70.0, 90.0) <= 0
    bucket.correct(early, 20.0)
    assert bucket.wait_s(70.0, 90.0) <= 0


@each_line("""
    used, starts
    # the bound is 100 tokens, or a second
    100 100 100 100 | 0 1 2 3
    # more than the bound delays the next call
    400 100 100 100 | 0 4 5 6
    100 100 400 100 | 0 1 2 6
    # less brings it forward
    20 20 20 20 | 0 0.2 0.4 0.6
    100 20 20 100 | 0 1 1.2 1.4
""")
def test_an_answer_corrects_the_tokens_of_its_call(used, starts):
    async def main():
        limiter = RateLimiter("tester", 1, None, 6000)
        found = []
        for tokens in map(int, used.split()):
            admission = await limiter.enter(100)
            found.append(admission.started_at)
            limiter.leave()
            limiter.answered(admission, tokens)
        return found

    assert run(main()) == approx([*map(float, starts.split())], abs=0.2)


def test_calls_are_admitted_with_the_mean_tokens_of_earlier_ones():
    async def main():
        limiter = RateLimiter("tester", 1, None, 6000)
        found = []
        for tokens in (100, 200, 50, 50):
            admission = await limiter.enter(1000)
            found.append(admission.tokens)
            limiter.leave()
            limiter.answered(admission, tokens)
        return found

    assert run(main()) == approx([1000, 100, 110, 104])


def test_a_refused_call_uses_no_tokens():
    async def main():
        limiter = RateLimiter("tester", 1, None, 6000)
        refused = await limiter.enter(1000)
        limiter.leave()
        limiter.refused(refused, 0.5)
        admission = await limiter.enter(1000)
        return admission.started_at

    assert run(main()) == approx(0.5, abs=0.2)


def test_requests_per_minute_are_limited(store):
    provider = Scripted(rpm=120, concurrency=50, latency_s=1.0)
    asked(store, provider, count=300)
    assert most_in_a_minute(provider.starts) in (119, 120)
    assert provider.starts[-1] == approx(150, rel=0.02)


def test_tokens_per_minute_follow_actual_usage(store):
    # Bound 150, actual 100.
    provider = Scripted(tpm=60_000, concurrency=50, latency_s=1.0)
    asked(store, provider, count=1000)
    assert provider.starts[-1] == approx(100, rel=0.05)
    assert most_in_a_minute(provider.starts, [100.0] * 1000) <= 60_000 * 1.05


def test_concurrency_is_limited(store):
    provider = Scripted(concurrency=7, latency_s=1.0)
    asked(store, provider, count=70)
    assert provider.most_in_flight == 7
    assert provider.starts[-1] == approx(9.0)


def test_a_429_pauses_all_calls_until_retry_after(store):
    script = fails(
        CallFailed("rate_limited", "slow down", retry_after_s=30),
        lambda ask, attempt: ask.text == "5" and attempt == 1,
    )
    provider = Scripted(script, concurrency=2, latency_s=1.0)
    outcome = asked(store, provider, count=20)
    assert (outcome.done, outcome.failed, outcome.retried) == (20, 0, 1)
    assert not [at for at in provider.starts if 3.01 < at < 33]


class Server:
    """Accepts `limit` concurrent calls, or `rpm` per minute, and answers 429 to others."""

    def __init__(self, limit=None, rpm=None, wish_s=None):
        self.limit, self.rpm, self.wish_s = limit, rpm, wish_s
        self.accepted = []
        self.refused = 0
        self.provider = Scripted(self.script, concurrency=64, latency_s=0.2)

    def script(self, ask, attempt):
        now = asyncio.get_running_loop().time()
        recent = sum(1 for at in self.accepted[-(self.rpm or 1) :] if now - at < 60)
        if (
            self.limit is not None and self.provider.in_flight >= self.limit
        ) or recent == self.rpm:
            self.refused += 1
            return CallFailed("rate_limited", "too many", retry_after_s=self.wish_s)
        self.accepted.append(now)
        return answer_at_once(ask, attempt)


def test_concurrency_adapts_to_the_server(store):
    server = Server(limit=5)
    outcome = asked(store, server.provider, count=1000)
    assert (outcome.done, outcome.failed) == (1000, 0)
    assert server.refused < 600
    assert server.accepted[-1] < 5 * 1000 * 0.2 / 5  # a fifth of the optimal speed


@parametrize("wish_s", [None, 2.0])
def test_the_rate_adapts_to_the_server(store, wish_s):
    server = Server(rpm=300, wish_s=wish_s)
    outcome = asked(store, server.provider, count=1500)
    assert (outcome.done, outcome.failed) == (1500, 0)
    # Optimal: 240 s, as the first minute's calls start at once.
    assert server.accepted[-1] < 2 * 240
    assert server.refused < 1500


def test_concurrency_recovers_after_429s(store):
    script = fails(
        CallFailed("rate_limited", "not yet"),
        lambda ask, attempt: asyncio.get_running_loop().time() < 10,
    )
    provider = Scripted(script, concurrency=16, latency_s=0.1)
    assert asked(store, provider, count=1000).done == 1000
    late = [at for at in provider.starts if at > provider.starts[-1] - 1]
    assert len(late) >= 140  # 160 a second is full speed


def test_ten_minutes_of_429s_end_the_run(store):
    provider = Scripted(fails(CallFailed("rate_limited", "", retry_after_s=7200)))
    with raises(
        RateLimited, match=r"tester: the server accepts no calls .* retry after 7200 s"
    ) as raised:
        asked(store, provider)
    assert raised.value.retry_after_s == 7200
    provider = Scripted(fails(CallFailed("rate_limited", "")))
    with raises(
        RateLimited, match=r"for now \(HTTP 429\); .* run the same command again later"
    ) as raised:
        asked(store, provider)
    assert raised.value.retry_after_s == 60  # the longest pause
    assert 600 < provider.starts[-1] < 800
    assert len(provider.starts) < 100


def test_a_question_that_always_gets_429_fails(store):
    script = fails(CallFailed("rate_limited", ""), lambda ask, attempt: ask.text == "3")
    outcome = asked(store, Scripted(script, concurrency=2, latency_s=1), count=2000)
    assert (outcome.done, outcome.failed) == (1999, 1)
    (failure,) = store.failures()
    assert (failure.reason, failure.final, failure.attempts) == (
        "rate_limited",
        False,
        100,
    )


def test_an_answer_resets_the_time_of_429s():
    async def main():
        limiter = RateLimiter("tester", 1, None, None)
        for pause_s, answers in ((0.0, False), (0.0, True), (MAX_WAIT_S + 1, False)):
            await asyncio.sleep(pause_s)
            entered = await limiter.enter(1)
            limiter.leave()
            if answers:
                limiter.answered(entered, 1)
            else:
                limiter.refused(entered, 0.1)

    run(main())


@given(st.lists(st.booleans(), max_size=200), st.integers(5, 20), st.floats(0.1, 1.0))
def test_the_breaker_opens_at_the_set_share(oks, window, share):
    breaker = Breaker(
        "tester", BreakerSettings(window=window, max_failures=share), concurrency=1
    )
    seen = []
    for number, ok in enumerate(oks):
        seen.append(ok)
        last = seen[-window:]
        due = not ok and len(last) == window and last.count(False) >= share * window
        try:
            breaker.note(None if ok else CallFailed("timeout", ""), 61.0 * number)
        except RemoteError:
            assert due
            return
        assert not due


def test_the_breaker_tolerates_a_failed_round_and_a_short_outage(store):
    def is_down(ask, attempt):
        return (now := asyncio.get_running_loop().time()) < 0.1 or 5 <= now < 35

    script = fails(CallFailed("connection", "reset"), is_down)
    provider = Scripted(script, concurrency=64, latency_s=0.2, attempts=8)
    assert (
        asked(store, provider, count=2000, breaker=BreakerSettings(window=5)).done
        == 2000
    )


def test_the_breaker_names_the_most_frequent_reason_and_its_last_detail():
    breaker = Breaker("a", BreakerSettings(window=5, max_failures=0.8), concurrency=1)
    reasons = values("""
        timeout | slow
        connection | reset
        timeout | slower
        timeout | slowest
    """)
    for reason, detail in reasons:
        breaker.note(CallFailed(reason, detail), 61.0)
    with remote_error(r"5 of the last 5 calls failed, most with timeout \(slowest\)"):
        breaker.note(CallFailed("connection", "refused"), 122.0)


def test_only_consecutive_equal_refusals_end_a_run():
    breaker = Breaker("a", BreakerSettings(refusals=3), concurrency=1)
    alike = CallFailed("rejected", "no such field", retry=False)
    breaker.note(alike, 0)
    breaker.note(None, 0)  # an answer resets the count
    breaker.note(alike, 0)
    breaker.note(alike, 0)
    # Another message resets it, too.
    breaker.note(CallFailed("rejected", "too long", retry=False), 0)
    breaker.note(alike, 0)
    breaker.note(alike, 0)
    with remote_error("refused 3 consecutive questions"):
        breaker.note(alike, 0)
