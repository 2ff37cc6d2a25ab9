"""Ask the unanswered questions of a run, then make the dataset from all answers."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from llm_labeler.clients.llms import LlmFunction, Provider, build
from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.budget import Budget, Spending, check_prices
from llm_labeler.dispatch.workers import Meter, ask_all, errors_by_llm, joined_error
from llm_labeler.records import Ask, Text
from llm_labeler.runs.assemble import AskSummary, Labelled, Notes, assemble
from llm_labeler.runs.label_folder import (
    IN_USE,
    STORE_FILE,
    RunRecord,
    check_out,
    load_run,
    save_run,
)
from llm_labeler.runs.label_plan import Plan, estimate
from llm_labeler.runs.prompts import load_template
from llm_labeler.runs.questions_and_votes import GenerationTask, ScreenedTexts, judge_questions
from llm_labeler.settings import AGGREGATIONS, RULES, BudgetSettings, LabelSettings
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import ConfigError, DataError, PairkitError, RemoteError, by_reader
from pairkit.base.openai_api.channel import run_anywhere
from pairkit.base.system.folders import check_apart, held_folder, work_beside
from pairkit.dataset.reading.in_memory import Source


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Options of `generate` and `judge` on how questions are asked."""

    batch: bool = False
    retry_failed: bool = False
    keep_going: bool = False


@dataclass(frozen=True, slots=True)
class AskSession:
    """A run's LLMs and store, and the options of this session."""

    record: RunRecord
    providers: Mapping[str, Provider]
    store: AnswerStore
    options: AskOptions
    show: Listener
    note: Callable[[str], None]

    def summary(self, outcomes: list[Meter], problems: Mapping[str, PairkitError]) -> AskSummary:
        """The calls, spending and failures of some stages."""
        failures = self.store.failures() if any(outcome.failed for outcome in outcomes) else ()
        missing = [
            failure for failure in failures if not failure.final and self.record.asks(failure.key)
        ]
        details = {failure.detail for failure in missing}
        # A limit that stopped an earlier round no longer matters if the last round went on.
        stopped = next(
            (outcome.stopped_by for outcome in outcomes[-2:] if outcome.stopped_by), None
        )
        return AskSummary(
            sum(outcome.cached for outcome in outcomes[:2]),
            sum(outcome.done for outcome in outcomes),
            sum((outcome.spent for outcome in outcomes), Spending()),
            stopped,
            dict(Counter(failure.reason for failure in missing)),
            problems,
            details.pop() if len(details) == 1 else "",
        )


async def ask_everything(
    session: AskSession, texts: Sequence[Text], screened: ScreenedTexts
) -> AskSummary:
    """Ask for proposals, then ask the judges; repeat while the judges leave budget for further proposals."""
    record = session.record
    options = session.options
    settings = record.settings
    task = GenerationTask(record)
    outcomes: list[Meter] = []
    async with _asking(session) as (ask, failed, left_out):
        proposers = [name for name in settings.proposers if name not in left_out]
        total = len(texts) * sum(map(task.questions_per_text, proposers))
        while True:
            proposals = {name: task.asks(texts, name) for name in proposers if name not in failed}
            judges = [name for name in settings.judges if name not in {*failed, *left_out}]
            first = await ask("proposing", proposals, total, _SHARE_OF_JUDGES if judges else 0.0)
            failed |= first.problems
            judges = [name for name in judges if name not in failed]
            asked = session.summary([*outcomes, first], failed)
            if not judges or (asked.unanswered and not options.keep_going):
                return asked
            screened.restart()
            questions = {name: judge_questions(screened, name, record) for name in judges}
            second = await ask("judging", questions, None, 0.0)
            failed |= second.problems
            outcomes += [first, second]
            if options.batch or not first.stopped_by or not first.done or second.stopped_by:
                return session.summary(outcomes, failed)


async def ask_judges(
    session: AskSession, questions: Mapping[str, Iterable[Ask]], *, total: int
) -> AskSummary:
    """Ask judges about existing pairs."""
    async with _asking(session) as (ask, failed, left_out):
        usable = {
            name: asks for name, asks in questions.items() if name not in {*failed, *left_out}
        }
        outcome = await ask("judging", usable, total, 0.0)
        return session.summary([outcome], {**failed, **outcome.problems})


_SHARE_OF_JUDGES = 0.5  # of the budget: judging costs about as much as proposing

# Asks a stage's questions: its name, the questions by LLM, their number, and the share of the budget to keep
# for another stage.
_AskStage = Callable[[str, Mapping[str, Iterable[Ask]], int | None, float], Awaitable[Meter]]


@asynccontextmanager
async def _asking(
    session: AskSession,
) -> AsyncIterator[tuple[_AskStage, dict[str, PairkitError], Collection[str]]]:
    """Check the LLMs; yield a function that asks, the LLMs that failed the check, and those left out."""
    settings = session.record.settings
    providers = session.providers
    store = session.store
    options = session.options
    budget = Budget(settings.budget, store.spent())

    async def ask(
        stage: str, asks: Mapping[str, Iterable[Ask]], total: int | None, kept_back: float
    ) -> Meter:
        budget.keep_back(kept_back)
        ask_stage = (
            run_batch if options.batch else partial(ask_all, breaker=settings.breaker, total=total)
        )
        return await ask_stage(
            *(asks, providers, store, budget),
            progress=session.show,
            stage=stage,
            retry_final=options.retry_failed,
            keep_going=options.keep_going,
        )

    try:
        if not options.batch:
            _refuse_double_payment(session.record, store, give_up=options.retry_failed)
        checks = (provider.check() for provider in providers.values())
        results = await asyncio.gather(*checks, return_exceptions=True)
        failed = errors_by_llm(dict(zip(providers, results, strict=True)))
        left_out = {name: failed.pop(name) for name in sorted(settings.optional & {*failed})}
        if len(failed) + len(left_out) == len(providers):
            error = joined_error([*failed.values(), *left_out.values()])
            raise ConfigError(str(error)) if left_out else error
        if failed and not options.keep_going:
            raise joined_error(list(failed.values()))
        for name, error in left_out.items():
            session.note(f"ensemble: {name} is left out: {error}")
        check_aggregation_can_work(settings, left_out)
        yield ask, failed, left_out
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


def _refuse_double_payment(record: RunRecord, store: AnswerStore, *, give_up: bool) -> None:
    """Refuse to ask questions that are in a pending batch, which would be paid, too."""
    pending = [batch for batch in store.batches() if any(map(record.asks, batch.keys.values()))]
    if pending and not give_up:
        number = sum(len(batch.keys) for batch in pending)
        llms = sorted({batch.llm for batch in pending})
        raise ConfigError(
            f"{number:,} questions are in a pending batch of {', '.join(llms)} and would be paid twice:"
            " collect it with --batch, or abandon it with --retry-failed"
        )
    for batch in pending:
        store.abandon_batch(batch)


def generate(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    functions: Mapping[str, LlmFunction],
    *,
    columns: Mapping[str, str] | None = None,
    options: AskOptions = AskOptions(),
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """See `llm_labeler.generate`."""
    start = time.monotonic()
    notes = Notes(progress)
    work = work or work_beside(out)
    check_apart(out, work)
    record, texts, providers = prepare(source, columns, settings, functions)
    notes.add_input(texts, remote_llms(settings, providers))
    check_out(out, record.run_json(), fresh=fresh)
    if any(settings.llm[name].kind == RULES for name in providers):
        from llm_labeler.clients.wordnet import language_warning

        if warning := language_warning([text.text for text in texts.texts]):
            notes.add(warning)
    with (
        held_folder(work, IN_USE),
        AnswerStore.open(work / STORE_FILE, create=True) as store,
        Display(progress) as show,
    ):
        save_run(work, record, texts.texts)
        if interrupted := store.recover():
            notes.add(
                f"{interrupted} calls were interrupted last time; each is charged at its upper bound"
            )
        check_prices(
            settings.budget, {name: p.prices for name, p in providers.items()}, store.spent()
        )
        screened = ScreenedTexts(store, record, {text.text_id: text for text in texts.texts})
        session = AskSession(record, providers, store, options, show, notes.add)
        is_limited = settings.budget != BudgetSettings()
        if is_limited and not options.batch:  # which costs half
            for line in estimate(record, texts.texts, providers, store).short_of():
                notes.add(line)
        asked = run_anywhere(ask_everything(session, texts.texts, screened))
        if not options.keep_going:
            refuse_unanswered(
                asked, f", or make the dataset without them: {_parse_command(work, out)}"
            )
        notes.add_rejected(store, record)
        stopped = _stopped(asked, settings, out, work)
        if stopped:
            notes.add(f"{stopped}; the dataset has the answers so far")
        try:
            return assemble(
                *(store, record, texts.texts, screened, out, work, asked, notes),
                started=start,
                show=show,
            )
        except DataError as error:
            if not stopped:
                raise
            raise DataError(f"{error}; {stopped}") from error


def _stopped(asked: AskSummary, settings: LabelSettings, out: Path, work: Path) -> str:
    """The limit that stopped a run, and how to use unjudged proposals; empty if no limit did."""
    if not asked.stopped:
        return ""
    limit = f"stopped at --{asked.stopped.replace('_', '-')}"
    if not settings.judges or not asked.cached + asked.spent.requests:
        return limit
    unjudged = out.with_name(f"{out.name}-unjudged")
    return (
        f"{limit}; {_parse_command(work, unjudged, aggregation='union')} makes a dataset of all proposals,"
        " judged or not"
    )


def _parse_command(work: Path, out: Path, **more: str) -> str:
    """The call of `parse`."""
    arguments = {"work": str(work), "out": str(out), **more}
    python = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    flags = (part for name, value in arguments.items() for part in (f"--{name}", value))
    shell = shlex.join(["label", "parse", *flags])
    return by_reader(shell=shell, python=f"llm_labeler.parse({python})")


def parse(
    work: Path,
    out: Path,
    settings: LabelSettings,
    *,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """See `llm_labeler.parse`."""
    start = time.monotonic()
    check_apart(out, work)
    recorded, texts = load_run(work)
    record = _with_settings(recorded, settings)
    check_out(out, record.run_json(), fresh=fresh)
    with (
        held_folder(work, IN_USE),
        AnswerStore.open(work / STORE_FILE) as store,
        Display(progress) as show,
    ):
        screened = ScreenedTexts(store, record, {text.text_id: text for text in texts})
        return assemble(
            *(store, record, texts, screened, out, work, AskSummary(), Notes(progress)),
            started=start,
            show=show,
        )


def plan(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    functions: Mapping[str, LlmFunction],
    *,
    columns: Mapping[str, str] | None = None,
) -> Plan:
    """See `llm_labeler.plan`."""
    work = work or work_beside(out)
    record, texts, providers = prepare(source, columns, settings, functions)
    if not (work / STORE_FILE).exists():
        return estimate(record, texts.texts, providers, None)
    with AnswerStore.open(work / STORE_FILE) as store:
        return estimate(record, texts.texts, providers, store)


def prepare(
    source: Source,
    columns: Mapping[str, str] | None,
    settings: LabelSettings,
    functions: Mapping[str, LlmFunction],
) -> tuple[RunRecord, InputTexts, dict[str, Provider]]:
    """Check the arguments before any call; return the run's record, its sentences and its LLMs."""
    if not settings.proposers:
        raise ConfigError(
            "no LLM is named; give --llm, such as chatgpt,llama, or wordnet for rules"
        )
    check_aggregation_can_work(settings)
    template = load_template(settings.prompt, settings.task)
    texts = read_texts(source, columns=columns, settings=settings.input, seed=settings.seed)
    names = dict.fromkeys((*settings.proposers, *settings.judges))
    providers = {name: build(name, settings.llm[name], functions.get(name)) for name in names}
    remote_llms(settings, providers)
    parameters = {name: (p.parameters, p.parameters_text) for name, p in providers.items()}
    record = RunRecord(settings, template, parameters, texts.name, texts.sha256, texts.dropped)
    return record, texts, providers


def check_aggregation_can_work(settings: LabelSettings, left_out: Collection[str] = ()) -> None:
    """Refuse a run whose only judge is its only proposer, as LLMs don't judge their own sentences."""
    aggregation = settings.ensemble.aggregation
    proposers = [name for name in settings.proposers if name not in left_out]
    judges_itself = len(proposers) == 1 and {*settings.judges} - {*left_out} <= {*proposers}
    if AGGREGATIONS[aggregation].is_judged and judges_itself:
        raise ConfigError(
            f"aggregation {aggregation}: no LLM judges its own sentences, and {proposers[0]} is the only one,"
            " so no pair could result; name more --llm or --judges, or use --aggregation=union"
        )


def remote_llms(settings: LabelSettings, providers: Mapping[str, Provider]) -> list[str]:
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
            remedy = "check the server and its [llm.NAME], then run the same command again"
        raise RemoteError(f"no answer to {asked.unanswered_counts()}; {remedy}")


def _with_settings(recorded: RunRecord, settings: LabelSettings) -> RunRecord:
    """The record with settings that change no question."""
    if _question_settings(settings) != _question_settings(recorded.settings):
        raise ConfigError(
            "task, size, samples, prompt and examples change the questions, so `label parse` can't change"
            " them; change them with `label generate`"
        )
    if unasked := sorted({*settings.proposers, *settings.judges} - set(recorded.parameters)):
        raise ConfigError(f"{', '.join(unasked)} was not asked; ask it with `label generate`")
    return replace(recorded, settings=settings)


def _question_settings(settings: LabelSettings) -> tuple[object, ...]:
    prompt = settings.prompt
    return (
        *(settings.task, settings.size, settings.samples),
        *(prompt.template, prompt.examples, prompt.changes),
    )
