"""Questions through the Batch API: kills, faults and budgets."""

from itertools import count

import pytest

from llm_labeler.dispatch.answer_store import AnswerStore, SubmittedBatch
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.budget import Budget, charge
from llm_labeler.dispatch.openai_batches import OpenAiBatches, read_lines, read_results
from llm_labeler.records import TokenUsage
from llm_labeler.settings import BudgetSettings
from pairkit import BadReply
from pairkit.base.openai_api.channel import Channel
from pairkit.base.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from tests.llm_labeler.llm_server import an_ask, provider, run
from tests.llm_labeler.scripted_provider import answers_in
from tests.support.llm import Faults, Options, serve
from tests.support.shorthand import (
    approx,
    config_error,
    parametrize,
    raises,
    remote_error,
    table,
)

PRICES = {"price_in": 1.0, "price_out": 2.0}


@pytest.fixture
def half_price(monkeypatch):
    """Treat the test server as OpenAI, which gives a discount."""
    monkeypatch.setattr(OpenAiBatches, "maker", "127.0.0.1")


def batch(
    base_url,
    store,
    asks=20,
    *,
    llms=("llama",),
    budget=None,
    progress=lambda progress: None,
    retry_final=False,
    **fields,
):
    """Run a batch as one process; with a number of questions, each LLM gets so many."""
    settings = {"kind": "openai"} | PRICES | fields
    asked = {llm: provider(base_url, name=llm, **settings) for llm in llms}
    questions = dict.fromkeys(llms, asks)
    if isinstance(asks, int):
        questions = {llm: [an_ask(n, llm=llm) for n in range(asks)] for llm in llms}

    async def main():
        limits = Budget(budget or BudgetSettings(), store.spent())
        try:
            return await run_batch(
                questions,
                asked,
                store,
                limits,
                progress=progress,
                poll_s=0.01,
                retry_final=retry_final,
            )
        finally:
            for llm in asked.values():
                await llm.close()

    return run(main())


def answered(store):
    return len(answers_in(store))


@pytest.mark.usefixtures("half_price")
def test_answers_match_their_questions_at_half_the_price(store):
    with serve(Options(batch_s=0.05)) as server:
        seen = []
        outcome = batch(server.base_url, store, progress=seen.append)
        assert server.stats.batches == 1
        again = batch(server.base_url, store, 25)
        assert (again.done, again.cached, server.stats.asked_again) == (5, 20, 0)
    assert (outcome.done, outcome.failed, outcome.cached, outcome.stopped_by) == (
        20,
        0,
        0,
        None,
    )
    by_text = {
        an_ask(number).key.text_id: f"Patient {number} is fine" for number in range(20)
    }
    direct = 0
    for answer in store.answers(("positive",), by_text):
        assert by_text[answer.key.text_id].split()[1] in answer.reply.raw.split()
        usage = answer.reply.usage
        assert usage is not None
        full = (usage.prompt_tokens + 2 * usage.completion_tokens) / 1e6
        direct += answer.cost == approx(full)
        assert answer.cost == approx(full) or answer.cost == approx(full / 2)
    assert direct == 1  # the first question
    assert store.spent() == outcome.spent + again.spent
    assert store.batches() == []
    assert any("19 in flight" in progress.note for progress in seen)


def test_the_batches_of_all_llms_are_in_flight(store):
    seen = []
    with serve(Options(batch_s=1.0)) as server:
        batch(server.base_url, store, llms=("llama", "qwen"), progress=seen.append)
    assert any("38 in flight" in progress.note for progress in seen)
    assert "in flight" not in seen[-1].note


class Killed(BaseException):
    """Simulates a kill: no code may catch it."""


POINTS = {
    "uploaded": ("upload", 1),
    "written down": ("save_batch", 1),
    "started": ("create", 1),
    "adopted": ("save_batch", 2),
    "looked at": ("status", 1),
    "downloaded": ("results", 1),
    "collected": ("collect_batch", 1),
}


def killed_at(point, base_url, store):
    """A run that is killed after the n-th time of a step."""
    name, times = POINTS[point]
    owner = AnswerStore if hasattr(AnswerStore, name) else OpenAiBatches
    plain, turns = getattr(owner, name), count(1)

    def end(result):
        if next(turns) == times:
            raise Killed
        return result

    async def step(*args, **kwargs):
        return end(await plain(*args, **kwargs))

    with pytest.MonkeyPatch.context() as patched:
        in_store = lambda *args, **kwargs: end(plain(*args, **kwargs))  # noqa: E731
        patched.setattr(owner, name, in_store if owner is AnswerStore else step)
        with raises(Killed):
            batch(base_url, store)


@parametrize("point", POINTS)
def test_a_killed_run_continues_without_a_second_batch(point, store):
    with serve(Options(batch_s=0.05)) as server:
        killed_at(point, server.base_url, store)
        assert server.stats.batches == (
            0 if point in ("written down", "uploaded") else 1
        )
        before = store.spent()
        outcome = batch(server.base_url, store)
        assert server.stats.batches == 1
        assert server.stats.asked_again == 0
    assert outcome.done + outcome.cached == 20
    assert outcome.failed == 0
    assert answered(store) == 20
    assert store.batches() == []
    assert store.spent().requests == 20
    # A pending batch counts at its bound; an uploaded file costs nothing.
    assert before.requests == (1 if point == "uploaded" else 20)


def test_blocked_answers_of_an_earlier_batch_are_asked_again_on_request(store):
    with serve(faults=Faults(1.0, ("filtered",), first=1)) as server:
        killed_at("started", server.base_url, store)
        outcome = batch(server.base_url, store, retry_final=True)
    assert (outcome.done, outcome.cached) == (20, 0)


def test_a_batch_is_found_on_a_later_page(store, monkeypatch):
    monkeypatch.setattr("llm_labeler.dispatch.openai_batches._PAGE", 2)

    with serve() as server:
        killed_at("started", server.base_url, store)
        with AnswerStore(store.path.with_name("other.sqlite"), create=True) as other:
            for number in range(5):  # each run starts a batch
                asks = map(
                    an_ask,
                    range(
                        100 + number * 20,
                        100 + number * 20 + (20 if number == 3 else 2),
                    ),
                )
                batch(server.base_url, other, asks)  # one has the size of ours
        assert batch(server.base_url, store).failed == 0
        assert server.stats.batches == 6
        assert server.stats.asked_again == 0


def test_a_batch_that_the_server_does_not_know(store):
    with serve(Options(batch_s=60)) as server:
        killed_at("adopted", server.base_url, store)
    with serve() as another, config_error("no such batch .* with retry_failed=True"):
        batch(another.base_url, store)
    assert len(store.batches()) == 1


@pytest.mark.usefixtures("half_price")
def test_the_budget_limits_batches(store):
    max_usage = provider("http://localhost:1/v1", kind="openai", **PRICES)
    one = max_usage.prices.cost(max_usage.max_usage(an_ask(11))) or 0.0
    asks = [an_ask(number) for number in range(11, 31)]
    with serve() as server:
        # the bound of one question at full price: what it didn't use is enough for more
        outcome = batch(
            server.base_url, store, asks, budget=BudgetSettings(max_cost=one)
        )
        assert outcome.stopped_by == "max_cost"
        assert 5 <= outcome.done < 19
        assert one / 2 < (store.spent().cost or 0) <= one
        assert server.stats.requests == outcome.done
        outcome = batch(
            server.base_url, store, asks, budget=BudgetSettings(max_requests=19)
        )
        assert outcome.stopped_by == "max_requests"
        assert store.spent().requests == server.stats.requests == 19


@parametrize("point", ["written down", "adopted"])
def test_unused_budget_of_an_earlier_batch_is_available(point, store):
    """A pending batch counts at its bound until its state is known."""

    with serve() as server:
        killed_at(point, server.base_url, store)
        limit = store.spent().tokens
        outcome = batch(
            server.base_url, store, 25, budget=BudgetSettings(max_tokens=limit)
        )
        assert (outcome.done + outcome.cached, outcome.stopped_by) == (25, None)
        assert store.spent().tokens < limit / 2
        assert outcome.spent.tokens < limit / 2


def test_batches_respect_the_size_limits(store, monkeypatch):
    monkeypatch.setattr(OpenAiBatches, "max_requests", 8)
    with serve() as server:
        assert batch(server.base_url, store).done == 20
        assert server.stats.batches == 3  # 8 + 8 + 3
        monkeypatch.setattr(OpenAiBatches, "max_bytes", 700)
        assert batch(server.base_url, store, 24).done == 4
        assert server.stats.batches >= 5


@parametrize(
    "page, error",
    [
        ('{"data": [{"id": "b%d", "status": "completed"}], "has_more": true}', "100 pages of batches"),
        ('{"data": [' + "[]," * 1_000_000 + "[]]}", "not usable JSON"),
        ('{"data": 3}', "no list of batches"),
        ('{"data": [3]}', "no valid 'id'"),
    ],
)  # fmt: skip
def test_pages_and_sizes_of_lists_are_bounded(page, error, monkeypatch):
    pages = count(1)

    async def get(*_, **__):
        return page.replace("%d", str(next(pages))).encode()

    monkeypatch.setattr(Channel, "get", get)
    batches = OpenAiBatches(provider("http://localhost:1/v1", kind="openai"), 0.01)
    with raises(BadReply, match=error):
        run(batches.find("label-1"))


def test_an_empty_name_is_no_file(monkeypatch):
    async def get(*_, **__):
        return b'{"id": "b", "status": "completed", "output_file_id": "f", "error_file_id": ""}'

    monkeypatch.setattr(Channel, "get", get)
    batches = OpenAiBatches(provider("http://localhost:1/v1", kind="openai"), 0.01)
    assert run(batches.status("b")).files == ("f",)


BUSY = RefusedCall(Refusal(503, "busy"), {"retry-after": "0.001"})
WRONG = RefusedCall(Refusal(400, "invalid file"), {})
FULL = RefusedCall(Refusal(429, "Too many are enqueued."), {})
LOST = NoAnswer("timeout", "no answer", was_sent=True)


@table(
    r"""
        method, fault, times, error
        upload | BUSY | 3 | None
        upload | BUSY | 100 | the Batch API failed .*busy
        upload | WRONG | 1 | the Batch API failed .*invalid file\); fix the cause
        post | FULL | 1 | could be started .*Too many are enqueued\.
        # the batch is looked up
        post | LOST | 1 | None
    """,
    BUSY=BUSY,
    WRONG=WRONG,
    FULL=FULL,
    LOST=LOST,
)
def test_transfers_that_fail(method, fault, times, error, store, monkeypatch):
    plain, left = getattr(Channel, method), [times]

    async def faulty(channel, path, *args, **options):
        if path in ("/files", "/batches") and left[0] > 0:
            left[0] -= 1
            if fault is LOST:
                await plain(channel, path, *args, **options)
            raise fault
        return await plain(channel, path, *args, **options)

    monkeypatch.setattr(Channel, method, faulty)
    monkeypatch.setattr("pairkit.base.openai_api.refusals.BACKOFF_S", 0.001)
    with serve() as server:
        if error:
            with remote_error(error):
                batch(server.base_url, store)
            left[0] = 0
        assert batch(server.base_url, store).failed == 0
        assert (server.stats.batches, server.stats.asked_again) == (1, 0)
    assert answered(store) == 20


YES = '{"choices": [{"message": {"content": "1. yes"}}]}'
EMPTY = """\
{"choices": [{"message": {"content": ""}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}"""
QUOTA = '{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}'
# With lines that are no results; an answer replaces a failure in any order.
OUTPUT = f"""\
{{"custom_id": "f", "response": {{"status_code": 200, "body": {YES}}}}}
{{"custom_id": "unknown", "response": {{"status_code": 200, "body": {YES}}}}}
{{"custom_id": "b", "response": {{"status_code": 200, "body": []}}}}
{{"custom_id": "f", "response": {{"status_code": 500, "body": {{}}}}}}
{{
[]
{{"custom_id": "c"}}
{{"custom_id": "d", "response": 3}}
\ufffd
{{"custom_id": "g", "response": {{"status_code": 500, "body": {{}}}}}}
{{"custom_id": "g", "response": {{"status_code": 200, "body": {YES}}}}}
{{"custom_id": "h", "response": {{"status_code": 200, "body": {EMPTY}}}}}"""
ERRORS = f"""\
{{"custom_id": "e", "response": {{"status_code": 429, "body": {QUOTA}}}}}
{{"custom_id": "c", "response": {{"status_code": 429, "body": {QUOTA}}}}}
{{"custom_id": "a", "response": {{"status_code": 503, "body": "busy"}}}}"""


def test_result_lines_are_matched_by_custom_id():
    keys = {name: an_ask(number).key for number, name in enumerate("abcdefgh")}
    waiting = SubmittedBatch(
        "llama", "batch_1", "completed", keys, TokenUsage(801, 80), 1.0
    )
    files = (OUTPUT.encode(), ERRORS.encode())
    asked = provider("http://localhost:1/v1", kind="openai", **PRICES)
    lines = [line for content in files for line in read_lines(content)]
    results = run(read_results(asked, waiting, "completed", lines, 0.5))
    assert list(results.answers) == ["f", "g"]
    answer = results.answers["f"]
    # unknown usage: the share of the bound, rounded up, at half the price
    assert (answer.key, answer.reply.usage, answer.estimated) == (
        keys["f"],
        TokenUsage(101, 10),
        True,
    )
    assert answer.cost == approx((101 + 2 * 10) / 1e6 / 2)
    reasons = {name: failure.reason for name, failure in results.failures.items()}
    expected = {"a": "server_error", "b": "broken_reply", "h": "empty_answer"}
    assert reasons == expected | dict.fromkeys("cde", "timeout")
    # Failures may be paid, too.
    assert results.charges["h"] == charge(TokenUsage(9, 1), (9 + 2) / 1e6 / 2)
    assert results.charges["b"].tokens == 111
    assert results.charges["a"].tokens == 0
    assert not any(failure.final for failure in results.failures.values())
    assert "the account is exhausted" in str(results.problem)
