"""Asking: see that every LLM can be reached, ask for proposals, then for judgements of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llm_labeler.clients.provider import Provider
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.workers import Outcome, ask_all, by_llm, together
from llm_labeler.records import Ask, Text
from llm_labeler.runs.tasks import judge_questions, proposed, task_of
from llm_labeler.store import Store
from llm_labeler.store.budget import Budget, Spending
from llm_labeler.store.run_folder import RunRecord
from pairkit.app.errors import ConfigError, PairkitError
from pairkit.app.progress import Listener


@dataclass(frozen=True, slots=True)
class How:
    """Ways of asking."""

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
    texts: tuple[Text, ...],
    providers: Mapping[str, Provider],
    store: Store,
    *,
    how: How,
    show: Listener,
) -> Asked:
    """Ask all that the run needs and the store does not hold."""
    settings = record.settings
    budget = Budget(settings.budget, store.spent())
    try:
        if not how.batch:
            _see_to_batches(record, store, give_up=how.retry_failed)
        dead = await _unreachable(providers, how)
        task = task_of(record)
        proposals = {name: task.asks(texts, name) for name in settings.proposers if name not in dead}
        ask = _Asking(record, providers, store, budget, how, show)
        total = len(texts) * sum(map(task.questions_a_text, settings.proposers))
        first = await ask.all("proposing", proposals, total)
        dead = {**dead, **first.problems}
        judges = [name for name in settings.judges if name not in dead]
        asked = _asked(store, record, [first], dead)
        if not judges or asked.stopped or (asked.unanswered and not how.keep_going):
            return asked
        by_id = {text.text_id: text for text in texts}
        judging = {name: judge_questions(proposed(store, record, by_id), name, record) for name in judges}
        second = await ask.all("judging", judging, None)
        return _asked(store, record, [first, second], {**dead, **second.problems})
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


async def ask_judges(
    record: RunRecord,
    questions: Mapping[str, Iterable[Ask]],
    providers: Mapping[str, Provider],
    store: Store,
    *,
    how: How,
    show: Listener,
    total: int,
) -> Asked:
    """Ask judges about pairs that are there already, as `ask_everything` asks for proposals."""
    budget = Budget(record.settings.budget, store.spent())
    try:
        if not how.batch:
            _see_to_batches(record, store, give_up=how.retry_failed)
        dead = await _unreachable(providers, how)
        asks = {name: asked for name, asked in questions.items() if name not in dead}
        outcome = await _Asking(record, providers, store, budget, how, show).all("judging", asks, total)
        return _asked(store, record, [outcome], {**dead, **outcome.problems})
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


async def _unreachable(providers: Mapping[str, Provider], how: How) -> dict[str, PairkitError]:
    """By LLM that can't be asked, why; an error where that ends the run."""
    dead = await check_all(providers)
    if dead and (not how.keep_going or len(dead) == len(providers)):
        raise together(list(dead.values()))
    return dead


@dataclass(frozen=True, slots=True)
class _Asking:
    record: RunRecord
    providers: Mapping[str, Provider]
    store: Store
    budget: Budget
    how: How
    show: Listener

    async def all(self, name: str, asks: Mapping[str, Iterable[Ask]], total: int | None) -> Outcome:
        ways = {"retry_final": self.how.retry_failed, "keep_going": self.how.keep_going}
        if self.how.batch:
            return await run_batch(
                asks, self.providers, self.store, self.budget, progress=self.show, stage=name, **ways
            )
        return await ask_all(
            asks,
            self.providers,
            self.store,
            self.budget,
            breaker=self.record.settings.breaker,
            progress=self.show,
            stage=name,
            total=total,
            **ways,
        )


def _see_to_batches(record: RunRecord, store: Store, *, give_up: bool) -> None:
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
    store: Store, record: RunRecord, outcomes: list[Outcome], problems: Mapping[str, PairkitError]
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
