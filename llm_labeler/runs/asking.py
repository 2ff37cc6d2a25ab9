"""Asking: see that every LLM can be reached, ask for proposals, then for judgements of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from llm_labeler.clients.provider import Provider
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.workers import AskOutcome, ask_all, by_llm, together
from llm_labeler.records import Ask, Text
from llm_labeler.runs.tasks import TextCandidates, judge_questions, task_of
from llm_labeler.store import AnswerStore
from llm_labeler.store.budget import Budget, Spending
from llm_labeler.store.run_folder import RunRecord
from pairkit.app.errors import ConfigError, PairkitError
from pairkit.app.progress import Listener


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How questions are asked."""

    batch: bool = False
    retry_failed: bool = False
    keep_going: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking came to."""

    cached: int = 0
    spent: Spending = field(default_factory=Spending)
    stopped: str | None = None
    unanswered: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, PairkitError] = field(default_factory=dict)


async def ask_everything(
    record: RunRecord,
    texts: Sequence[Text],
    screened: Iterable[TextCandidates],
    providers: Mapping[str, Provider],
    store: AnswerStore,
    options: AskOptions,
    show: Listener,
) -> Asked:
    """Ask all that the run needs and the store does not hold; `screened` is read after the proposals."""
    settings, task = record.settings, task_of(record)
    async with _asking(record, providers, store, options, show) as (ask, dead):
        proposals = {name: task.asks(texts, name) for name in settings.proposers if name not in dead}
        total = len(texts) * sum(map(task.questions_a_text, settings.proposers))
        first = await ask("proposing", proposals, total)
        dead |= first.problems
        judges = [name for name in settings.judges if name not in dead]
        asked = _asked(store, record, [first], dead)
        if not judges or asked.stopped or (asked.unanswered and not options.keep_going):
            return asked
        second = await ask(
            "judging", {name: judge_questions(screened, name, record) for name in judges}, None
        )
        return _asked(store, record, [first, second], {**dead, **second.problems})


async def ask_judges(
    record: RunRecord,
    questions: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: AnswerStore,
    options: AskOptions,
    show: Listener,
    *,
    total: int,
) -> Asked:
    """Ask judges about existing pairs, as `ask_everything` asks for proposals."""
    async with _asking(record, providers, store, options, show) as (ask, dead):
        alive = {name: asks for name, asks in questions.items() if name not in dead}
        outcome = await ask("judging", alive, total)
        return _asked(store, record, [outcome], {**dead, **outcome.problems})


_AskStage: TypeAlias = Callable[[str, Mapping[str, Iterable[Ask]], int | None], Awaitable[AskOutcome]]


@asynccontextmanager
async def _asking(
    record: RunRecord,
    providers: Mapping[str, Provider],
    store: AnswerStore,
    options: AskOptions,
    show: Listener,
) -> AsyncIterator[tuple[_AskStage, dict[str, PairkitError]]]:
    """How to ask a stage's questions, and the LLMs that can't be asked with the reasons."""
    budget = Budget(record.settings.budget, store.spent())
    retry, go_on = options.retry_failed, options.keep_going

    async def ask(stage: str, asks: Mapping[str, Iterable[Ask]], total: int | None) -> AskOutcome:
        where = (asks, providers, store, budget)
        if options.batch:
            return await run_batch(*where, progress=show, stage=stage, retry_final=retry, keep_going=go_on)
        breaker = record.settings.breaker
        return await ask_all(
            *where,
            breaker=breaker,
            progress=show,
            stage=stage,
            total=total,
            retry_final=retry,
            keep_going=go_on,
        )

    try:
        if not options.batch:
            _refuse_double_payment(record, store, give_up=options.retry_failed)
        dead = await check_all(providers)
        if dead and (not options.keep_going or len(dead) == len(providers)):
            raise together(list(dead.values()))
        yield ask, dead
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


def _refuse_double_payment(record: RunRecord, store: AnswerStore, *, give_up: bool) -> None:
    """See that no question is asked beside a batch that holds it: both would be paid."""
    waiting = [batch for batch in store.batches() if any(map(record.asks, batch.keys.values()))]
    if waiting and not give_up:
        number, llms = sum(len(batch.keys) for batch in waiting), sorted({batch.llm for batch in waiting})
        raise ConfigError(
            f"{number:,} questions wait in a batch of {', '.join(llms)} and would be paid twice: collect it"
            " with batch (--batch), or give it up and ask them again with retry_failed (--retry-failed)"
        )
    for batch in waiting:
        store.give_up_batch(batch)


async def check_all(providers: Mapping[str, Provider]) -> dict[str, PairkitError]:
    """By LLM that can't be asked, what to do about it."""
    checks = (provider.check() for provider in providers.values())
    ends = await asyncio.gather(*checks, return_exceptions=True)
    return by_llm(dict(zip(providers, ends, strict=True)))


def _asked(
    store: AnswerStore, record: RunRecord, outcomes: list[AskOutcome], problems: Mapping[str, PairkitError]
) -> Asked:
    unanswered: Counter[str] = Counter()
    if any(outcome.failed for outcome in outcomes):
        unanswered.update(
            failure.reason for failure in store.failures() if not failure.final and record.asks(failure.key)
        )
    stopped = next((outcome.stopped_by for outcome in outcomes if outcome.stopped_by), None)
    return Asked(
        sum(outcome.cached for outcome in outcomes),
        sum((outcome.spent for outcome in outcomes), Spending()),
        stopped,
        dict(unanswered),
        problems,
    )
