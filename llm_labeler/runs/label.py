"""Ask the unanswered questions of a run, then make the dataset from all answers."""

from __future__ import annotations

import asyncio
import shlex
import time
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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from llm_labeler.clients.llms import Provider, build_all, parameters_of
from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.budget import Budget, Spending, check_prices
from llm_labeler.dispatch.workers import Meter, ask_all, errors_by_task, joined_error
from llm_labeler.records import Ask, Text
from llm_labeler.runs.arguments import LabelCall
from llm_labeler.runs.assemble import StoredRun, assemble
from llm_labeler.runs.label_folder import (
    IN_USE,
    STORE_FILE,
    RunRecord,
    check_out,
    load_run,
    save_run,
)
from llm_labeler.runs.label_plan import Plan, estimate
from llm_labeler.runs.notes import Notes
from llm_labeler.runs.prompts import load_template
from llm_labeler.runs.questions_and_votes import (
    GenerationTask,
    ScreenedTexts,
    judge_questions,
)
from llm_labeler.runs.run_result import AskSummary, Labelled
from llm_labeler.settings import AGGREGATIONS, BudgetSettings, LabelSettings
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import (
    ConfigError,
    DataError,
    PairkitError,
    RemoteError,
    by_reader,
)
from pairkit.base.openai_api.channel import run_anywhere
from pairkit.base.system.folders import check_apart, lock_folder

_SHARE_OF_JUDGES = 0.5  # of the budget: judging costs about as much as proposing


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


def generate(call: LabelCall) -> Labelled:
    """See `llm_labeler.generate`."""
    start = time.monotonic()
    notes = Notes(call.progress)
    settings = call.settings
    record, texts, providers = prepare(call)
    notes.add_input(texts, remote_llms(settings, providers))
    check_out(call.out, record.run_json(), fresh=call.fresh)
    if settings.judge.llms and not settings.judges:
        notes.add(
            f"{', '.join(settings.judge.llms)} won't judge: aggregation"
            f" {settings.ensemble.aggregation} needs no judges; give --aggregation=vote"
            " or weighted"
        )
    if any(settings.llm[name].is_rules for name in providers):
        from llm_labeler.clients.wordnet import language_warning

        warning = language_warning([text.text for text in texts.texts])
        if warning:
            notes.add(warning)
    with open_session(record, providers, call, notes.add) as session:
        save_run(call.work, record, texts.texts)
        store = session.store
        screened = ScreenedTexts(store, record, texts.texts)
        is_limited = settings.budget != BudgetSettings()
        if is_limited and not call.batch:  # which costs half
            for line in estimate(record, texts.texts, providers, store).short_of():
                notes.add(line)
        asked = run_anywhere(ask_everything(session, texts.texts, screened))
        if not call.keep_going:
            parsing = _parse_command(call.work, call.out)
            alternative = f"make the dataset without them: {parsing}"
            refuse_unanswered(asked, f", or {alternative}")
        notes.add_rejected(store, record)
        stopped = _stopped(asked, call)
        if stopped:
            notes.add(f"{stopped}; the dataset has the answers so far")
        stored = StoredRun(store, record, texts.texts, screened, call.work)
        try:
            return assemble(
                stored, call.out, asked, notes, started=start, show=session.show
            )
        except DataError as error:
            if not stopped:
                raise
            raise DataError(f"{error}; {stopped}") from error


def _stopped(asked: AskSummary, call: LabelCall) -> str:
    """The limit that stopped a run, and how to use unjudged proposals; empty if no limit did."""
    if not asked.stopped:
        return ""
    limit = f"stopped at --{asked.stopped.replace('_', '-')}"
    if not call.settings.judges or not asked.cached + asked.spent.requests:
        return limit
    unjudged = call.out.with_name(f"{call.out.name}-unjudged")
    command = _parse_command(call.work, unjudged, aggregation="union")
    return f"{limit}; {command} makes a dataset of all proposals, judged or not"


def _parse_command(work: Path, out: Path, **more: str) -> str:
    """The call of `parse`."""
    arguments = {"work": str(work), "out": str(out), **more}
    python = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    words = ["label", "parse"]
    for name, value in arguments.items():
        words += [f"--{name}", value]
    return by_reader(shell=shlex.join(words), python=f"llm_labeler.parse({python})")


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
        lock_folder(work, IN_USE),
        AnswerStore(work / STORE_FILE) as store,
        Display(progress) as show,
    ):
        screened = ScreenedTexts(store, record, texts, recorded)
        stored = StoredRun(store, record, texts, screened, work)
        notes = Notes(progress)
        return assemble(stored, out, AskSummary(), notes, started=start, show=show)


def plan(call: LabelCall) -> Plan:
    """See `llm_labeler.plan`."""
    record, texts, providers = prepare(call)
    path = call.work / STORE_FILE
    if not path.exists():
        return estimate(record, texts.texts, providers, None)
    with AnswerStore(path) as store:
        return estimate(record, texts.texts, providers, store)


def prepare(call: LabelCall) -> tuple[RunRecord, InputTexts, dict[str, Provider]]:
    """Check the arguments before any call; return the run's record, its sentences and its LLMs."""
    settings = call.settings
    if not settings.proposers:
        raise ConfigError(
            "no LLM is named; give --llm, such as chatgpt,llama, or wordnet for rules"
        )
    check_aggregation_can_work(settings)
    template = load_template(settings.prompt, settings.task)
    texts = read_texts(
        call.source, columns=call.columns, settings=settings.input, seed=settings.seed
    )
    names = (*settings.proposers, *settings.judges)
    providers = build_all(names, settings, call.functions)
    remote_llms(settings, providers)
    parameters = parameters_of(providers)
    record = RunRecord(
        settings, template, parameters, texts.name, texts.sha256, texts.dropped
    )
    return record, texts, providers


def check_aggregation_can_work(
    settings: LabelSettings, left_out: Collection[str] = ()
) -> None:
    """Refuse a run whose only judge is its only proposer, as LLMs don't judge their own sentences."""
    aggregation = settings.ensemble.aggregation
    proposers = [name for name in settings.proposers if name not in left_out]
    judges = {*settings.judges} - {*left_out}
    judges_itself = len(proposers) == 1 and judges <= {*proposers}
    if AGGREGATIONS[aggregation].is_judged and judges_itself:
        raise ConfigError(
            f"aggregation {aggregation}: no LLM judges its own sentences, and {proposers[0]} is the only one,"
            " so no pair could result; name more --llm or --judges, or use --aggregation=union"
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


def _with_settings(recorded: RunRecord, settings: LabelSettings) -> RunRecord:
    """The record with settings that change no question."""
    if _question_settings(settings) != _question_settings(recorded.settings):
        raise ConfigError(
            "task, size, samples, prompt, examples, input, llm and judge.candidates_per_call change the"
            " questions, so `label parse` can't change them; change them with `label generate`"
        )
    named = {*settings.proposers, *settings.judges}
    if unasked := sorted(named - recorded.parameters.keys()):
        raise ConfigError(
            f"{', '.join(unasked)} was not asked; ask it with `label generate`"
        )
    check_aggregation_can_work(settings)
    return replace(recorded, settings=settings)


def _question_settings(settings: LabelSettings) -> tuple[object, ...]:
    prompt = settings.prompt
    return (
        settings.task,
        settings.size,
        settings.samples,
        settings.input,
        settings.llm,
        (prompt.template, prompt.examples, prompt.changes),
        settings.judge.candidates_per_call,
    )
