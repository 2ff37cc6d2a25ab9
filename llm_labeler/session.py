"""Asking: see that every LLM can be reached, ask for proposals, then for judgements of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from llm_labeler.batch import run_batch
from llm_labeler.budget import Budget
from llm_labeler.dispatch import Outcome, Progress, ask_all
from llm_labeler.evidence import judge_questions, proposed
from llm_labeler.prompts import generation_asks
from llm_labeler.provider import Provider
from llm_labeler.records import Ask, Text
from llm_labeler.store import Store
from llm_labeler.workplace import RunRecord
from pairkit.errors import ConfigError, PairkitError, RemoteError

Show = Callable[["Stage"], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where asking stands."""

    name: str  # proposing, judging
    progress: Progress


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking came to.

    Attributes:
        cached: Questions that were answered before.
        stopped: The limit that left questions unasked, if one did.
        unanswered: Why questions that were asked have no answer, with their numbers; the rejected ones, which
            no second try would change, aside.
    """

    cached: int = 0
    stopped: str | None = None
    unanswered: Mapping[str, int] = field(default_factory=dict)


async def ask_everything(
    record: RunRecord,
    texts: tuple[Text, ...],
    providers: Mapping[str, Provider],
    store: Store,
    *,
    batch: bool,
    show: Show,
) -> Asked:
    """Ask all that the run needs and the store does not hold.

    Args:
        record: The run.
        texts: Its sentences.
        providers: By name, all that will be asked.
        store: Answers, failures and what was spent.
        batch: Use the Batch API for proposals and judgements.
        show: Told how it goes on.

    Raises:
        PairkitError: LLMs that can't be reached, all of them named; or none that can go on.
    """
    settings = record.settings
    budget = Budget(settings.budget, store.spent())
    try:
        await check_all(providers)
        proposals = {
            name: generation_asks(
                texts,
                record.template,
                settings.size,
                settings.prompt.polarities,
                name,
                record.parameters[name][0],
            )
            for name in settings.proposers
        }
        ask = _Asking(record, providers, store, budget, batch, show)
        total = len(texts) * len(settings.prompt.polarities) * len(settings.proposers)
        first = await ask.all("proposing", proposals, total)
        if not settings.judges or first.stopped_by or first.failed:
            return _asked(store, [first])
        by_id = {text.text_id: text for text in texts}
        judging = {
            name: judge_questions(proposed(store, record, by_id), name, record) for name in settings.judges
        }
        return _asked(store, [first, await ask.all("judging", judging, None)])
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


@dataclass(frozen=True, slots=True)
class _Asking:
    record: RunRecord
    providers: Mapping[str, Provider]
    store: Store
    budget: Budget
    batch: bool
    show: Show

    async def all(self, name: str, asks: Mapping[str, Iterable[Ask]], total: int | None) -> Outcome:
        def tell(progress: Progress) -> None:
            self.show(Stage(name, progress))

        if self.batch:
            return await run_batch(asks, self.providers, self.store, self.budget, progress=tell)
        return await ask_all(
            asks,
            self.providers,
            self.store,
            self.budget,
            breaker=self.record.settings.breaker,
            progress=tell,
            total=total,
        )


async def check_all(providers: Mapping[str, Provider]) -> None:
    """See that every LLM can be asked.

    Raises:
        PairkitError: names all that can't, with what to do about each; of the kind of the first.
    """
    ends = await asyncio.gather(
        *(provider.check() for provider in providers.values()), return_exceptions=True
    )
    problems = [end for end in ends if isinstance(end, BaseException)]
    for problem in problems:
        if not isinstance(problem, PairkitError):
            raise problem
    if len(problems) == 1:
        raise problems[0]
    if problems:
        told = "; ".join(str(problem) for problem in problems)
        is_config = any(isinstance(problem, ConfigError) for problem in problems)
        raise (ConfigError if is_config else RemoteError)(f"{len(problems)} LLMs can't be asked: {told}")


def _asked(store: Store, outcomes: list[Outcome]) -> Asked:
    unanswered: Counter[str] = Counter()
    if any(outcome.failed for outcome in outcomes):
        unanswered.update(failure.reason for failure in store.failures() if not failure.final)
    stopped = next((outcome.stopped_by for outcome in outcomes if outcome.stopped_by), None)
    return Asked(sum(outcome.cached for outcome in outcomes), stopped, dict(unanswered))
