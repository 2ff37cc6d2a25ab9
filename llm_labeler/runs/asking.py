"""A session that asks a run's LLMs, within the budget, and stores their answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_labeler.clients.llms import LlmFunction, Provider
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.budget import Budget, Spending, check_prices
from llm_labeler.dispatch.workers import Meter, ask_all, errors_by_task, joined_error
from llm_labeler.records import Ask, Text
from llm_labeler.runs.label_folder import IN_USE, STORE_FILE, RunRecord
from llm_labeler.runs.questions_and_votes import (
    GenerationTask,
    ScreenedTexts,
    judge_questions,
)
from llm_labeler.runs.run_result import AskSummary
from llm_labeler.settings import LabelSettings
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import ConfigError, PairkitError, RemoteError
from pairkit.base.system.folders import lock_folder

if TYPE_CHECKING:
    from pairkit.dataset.reading.in_memory import Source

_SHARE_OF_JUDGES = 0.5  # of the budget: judging costs about as much as proposing


@dataclass(frozen=True, slots=True)
class LabelCall:
    """The checked arguments of `generate`, `plan` or `judge`."""

    source: Source
    out: Path
    work: Path
    columns: dict[str, str] | None
    settings: LabelSettings
    functions: Mapping[str, LlmFunction]
    batch: bool
    keep_going: bool
    retry_failed: bool
    fresh: bool
    progress: bool | Listener


@dataclass(slots=True)
class AskSession:
    """A run's LLMs and store, the options of this session, and the LLMs that can't be asked."""

    record: RunRecord
    providers: Mapping[str, Provider]
    store: AnswerStore
    budget: Budget
    call: LabelCall
    show: Listener
    note: Callable[[str], None]
    failed: dict[str, PairkitError] = field(default_factory=dict)
    left_out: dict[str, PairkitError] = field(default_factory=dict)

    def usable(self, names: Iterable[str]) -> list[str]:
        """The LLMs that can be asked."""
        unavailable = self.failed | self.left_out
        return [name for name in names if name not in unavailable]

    async def ask(
        self,
        stage: str,
        asks: Mapping[str, Iterable[Ask]],
        total: int | None = None,
        kept_back: float = 0.0,
    ) -> Meter:
        """Ask the questions of a stage; keep a share of the budget for another stage."""
        self.budget.keep_back(kept_back)
        ask_singly = partial(ask_all, breaker=self.record.settings.breaker, total=total)
        ask_stage = run_batch if self.call.batch else ask_singly
        meter = await ask_stage(
            asks,
            self.providers,
            self.store,
            self.budget,
            progress=self.show,
            stage=stage,
            retry_final=self.call.retry_failed,
            keep_going=self.call.keep_going,
        )
        self.failed |= meter.problems
        return meter

    def summary(self, meters: list[Meter]) -> AskSummary:
        """The calls, spending and failures of some stages."""
        missing = []
        if any(meter.failed for meter in meters):
            failures = self.store.failures()
            missing = [f for f in failures if not f.final and self.record.asks(f.key)]
        details = {failure.detail for failure in missing}
        # A limit that stopped an earlier round no longer matters if the last round went on.
        stopped = [meter.stopped_by for meter in meters[-2:] if meter.stopped_by]
        return AskSummary(
            cached=sum(meter.cached for meter in meters[:2]),
            answered=sum(meter.done for meter in meters),
            spent=sum((meter.spent for meter in meters), Spending()),
            stopped=stopped[0] if stopped else None,
            unanswered=Counter(failure.reason for failure in missing),
            problems=self.failed,
            detail=details.pop() if len(details) == 1 else "",
        )


async def ask_everything(
    session: AskSession, texts: Sequence[Text], screened: ScreenedTexts
) -> AskSummary:
    """Ask for proposals, then ask the judges; repeat while the judges leave budget for further proposals."""
    record = session.record
    call = session.call
    settings = record.settings
    task = GenerationTask(record)
    meters: list[Meter] = []
    async with _checked(session):
        proposers = [
            name for name in settings.proposers if name not in session.left_out
        ]
        total = len(texts) * sum(map(task.questions_per_text, proposers))
        while True:
            proposals = {
                name: task.asks(texts, name) for name in session.usable(proposers)
            }
            kept_back = _SHARE_OF_JUDGES if session.usable(settings.judges) else 0.0
            first = await session.ask("proposing", proposals, total, kept_back)
            judges = session.usable(settings.judges)
            asked = session.summary([*meters, first])
            if not judges or (asked.unanswered and not call.keep_going):
                return asked
            screened.restart()
            questions = {
                name: judge_questions(screened, name, record) for name in judges
            }
            second = await session.ask("judging", questions)
            meters += [first, second]
            # The judges may have left budget for further proposals.
            may_go_on = first.stopped_by and first.done and not second.stopped_by
            if call.batch or not may_go_on:
                return session.summary(meters)


async def ask_judges(
    session: AskSession, questions: Mapping[str, Iterable[Ask]], *, total: int
) -> AskSummary:
    """Ask judges about existing pairs."""
    async with _checked(session):
        usable = {name: questions[name] for name in session.usable(questions)}
        meter = await session.ask("judging", usable, total)
        return session.summary([meter])


@asynccontextmanager
async def _checked(session: AskSession) -> AsyncIterator[None]:
    """Find out which LLMs can't be asked, and close the connections at the end."""
    settings = session.record.settings
    providers = session.providers
    call = session.call
    try:
        if not call.batch:
            _refuse_double_payment(session)
        checks = (provider.check() for provider in providers.values())
        results = await asyncio.gather(*checks, return_exceptions=True)
        session.failed = errors_by_task(dict(zip(providers, results, strict=True)))
        for name in sorted(settings.optional & session.failed.keys()):
            session.left_out[name] = session.failed.pop(name)
        errors = [*session.failed.values(), *session.left_out.values()]
        if len(errors) == len(providers):
            error = joined_error(errors)
            raise ConfigError(str(error)) if session.left_out else error
        if session.failed and not call.keep_going:
            raise joined_error([*session.failed.values()])
        for name, error in session.left_out.items():
            session.note(f"ensemble: {name} is left out: {error}")
        check_aggregation_can_work(settings, session.left_out)
        yield
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


@contextmanager
def open_session(
    record: RunRecord,
    providers: Mapping[str, Provider],
    call: LabelCall,
    note: Callable[[str], None],
) -> Iterator[AskSession]:
    """Open the working folder; calls that an earlier session left unfinished are charged."""
    settings = record.settings.budget
    with (
        lock_folder(call.work, IN_USE),
        AnswerStore(call.work / STORE_FILE, create=True) as store,
        Display(call.progress) as show,
    ):
        interrupted = store.recover()
        if interrupted:
            note(
                f"{interrupted} calls were interrupted last time; each is charged at its upper bound"
            )
        spent = store.spent()
        prices = {name: llm.prices for name, llm in providers.items()}
        check_prices(settings, prices, spent)
        budget = Budget(settings, spent)
        yield AskSession(record, providers, store, budget, call, show, note)


def _refuse_double_payment(session: AskSession) -> None:
    """Refuse to ask questions that are in a pending batch, which would be paid, too."""
    asks = session.record.asks
    batches = session.store.batches()
    pending = [batch for batch in batches if any(map(asks, batch.keys.values()))]
    if pending and not session.call.retry_failed:
        number = sum(len(batch.keys) for batch in pending)
        llms = sorted({batch.llm for batch in pending})
        raise ConfigError(
            f"{number:,} questions are in a pending batch of {', '.join(llms)} and would be paid twice:"
            " collect it with --batch, or abandon it with --retry-failed"
        )
    for batch in pending:
        session.store.abandon_batch(batch)


def check_aggregation_can_work(
    settings: LabelSettings, left_out: Collection[str] = ()
) -> None:
    """Refuse a run whose only judge is its only proposer, as LLMs don't judge their own sentences."""
    proposers = [name for name in settings.proposers if name not in left_out]
    judges = {*settings.judges} - {*left_out}
    judges_itself = len(proposers) == 1 and judges <= {*proposers}
    if settings.ensemble.rule.is_judged and judges_itself:
        raise ConfigError(
            f"aggregation {settings.ensemble.aggregation}: no LLM judges its own sentences, and {proposers[0]} is the"
            " only one, so no pair could result; name more --llm or --judges, or use --aggregation=union"
        )


def remote_llms(
    settings: LabelSettings, providers: Mapping[str, Provider]
) -> list[str]:
    """The LLMs that may send text to another machine; refused with `local_only`."""
    names = [name for name, provider in providers.items() if provider.leaves_machine]
    if settings.local_only and names:
        raise ConfigError(
            f"--local-only: {', '.join(names)} may send text to another machine; if the LLM runs on this"
            f" machine, set local = true in [llm.{names[0]}]"
        )
    return names


def refuse_unanswered(asked: AskSummary, alternative: str) -> None:
    """Raise an error if a question failed."""
    if asked.unanswered:
        remedy = f"run the same command again to ask them{alternative}"
        if not asked.cached + asked.answered:
            remedy = (
                "check the server and its [llm.NAME], then run the same command again"
            )
        raise RemoteError(f"no answer to {asked.unanswered_counts()}; {remedy}")
