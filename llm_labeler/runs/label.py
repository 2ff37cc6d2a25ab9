"""From sentences to a dataset: ask what is missing, then make the dataset of all answers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from llm_labeler.clients.function import LlmFunction
from llm_labeler.clients.llms import build
from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.dispatch.batch import run_batch
from llm_labeler.dispatch.budget import Budget, Spending, check_prices
from llm_labeler.dispatch.workers import AskOutcome, ask_all, by_llm, together
from llm_labeler.records import Ask, Provider, Text
from llm_labeler.runs.assemble import Asked, Labelled, Notes, assemble
from llm_labeler.runs.plan import Plan, estimate
from llm_labeler.runs.prompts import load_template
from llm_labeler.runs.run_folder import IN_USE, STORE_FILE, RunRecord, check_out, load_run, save_run
from llm_labeler.runs.tasks import GenerationTask, ScreenedTexts, judge_questions
from llm_labeler.settings import AGGREGATIONS, LabelSettings
from pairkit.app.errors import ConfigError, DataError, PairkitError, RemoteError
from pairkit.app.progress import Display, Listener
from pairkit.dataset.in_memory import Source
from pairkit.openai_api.channel import run_anywhere
from pairkit.system.folders import check_apart, held_folder, work_beside


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How questions are asked."""

    batch: bool = False
    retry_failed: bool = False
    keep_going: bool = False
    tell: Callable[[str], None] = lambda words: None  # noqa: ARG005 - of what is known before any answer


async def ask_everything(
    record: RunRecord,
    texts: Sequence[Text],
    screened: ScreenedTexts,
    providers: Mapping[str, Provider],
    store: AnswerStore,
    options: AskOptions,
    show: Listener,
) -> Asked:
    """Ask all that is missing: proposals, then judges; both again with what judges left of the budget."""
    settings, task = record.settings, GenerationTask(record)
    outcomes: list[AskOutcome] = []
    async with _asking(record, providers, store, options, show) as (ask, dead, left_out):
        proposers = [name for name in settings.proposers if name not in left_out]
        total = len(texts) * sum(map(task.questions_a_text, proposers))
        while True:
            proposals = {name: task.asks(texts, name) for name in proposers if name not in dead}
            judges = [name for name in settings.judges if name not in {*dead, *left_out}]
            first = await ask("proposing", proposals, total, kept_back=_FOR_JUDGES if judges else 0.0)
            dead |= first.problems
            judges = [name for name in judges if name not in dead]
            asked = _asked(store, record, [*outcomes, first], dead)
            if not judges or (asked.unanswered and not options.keep_going):
                return asked
            screened.restart()
            questions = {name: judge_questions(screened, name, record) for name in judges}
            second = await ask("judging", questions, None)
            dead |= second.problems
            outcomes += [first, second]
            if options.batch or not first.stopped_by or not first.done or second.stopped_by:
                return _asked(store, record, outcomes, dead)


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
    async with _asking(record, providers, store, options, show) as (ask, dead, left_out):
        alive = {name: asks for name, asks in questions.items() if name not in {*dead, *left_out}}
        outcome = await ask("judging", alive, total)
        return _asked(store, record, [outcome], {**dead, **outcome.problems})


_FOR_JUDGES = 0.5  # of the budget: judging takes about as much as proposing


class _AskStage(Protocol):
    """Asks one stage's questions, `total` in number, and leaves a share of the budget for another stage."""

    def __call__(
        self, stage: str, asks: Mapping[str, Iterable[Ask]], total: int | None, *, kept_back: float = 0.0
    ) -> Awaitable[AskOutcome]: ...


@asynccontextmanager
async def _asking(
    record: RunRecord,
    providers: Mapping[str, Provider],
    store: AnswerStore,
    options: AskOptions,
    show: Listener,
) -> AsyncIterator[tuple[_AskStage, dict[str, PairkitError], Collection[str]]]:
    """How to ask a stage's questions, the LLMs that can't be asked with the reasons, and those left out."""
    budget = Budget(record.settings.budget, store.spent())
    retry, go_on = options.retry_failed, options.keep_going

    async def ask(
        stage: str, asks: Mapping[str, Iterable[Ask]], total: int | None, *, kept_back: float = 0.0
    ) -> AskOutcome:
        budget.keep_back(kept_back)
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
        checks = (provider.check() for provider in providers.values())
        dead = by_llm(
            dict(zip(providers, await asyncio.gather(*checks, return_exceptions=True), strict=True))
        )
        left_out = {name: dead.pop(name) for name in sorted(record.settings.optional & {*dead})}
        if len(dead) + len(left_out) == len(providers):
            error = together([*dead.values(), *left_out.values()])
            raise ConfigError(str(error)) if left_out else error
        if dead and not options.keep_going:
            raise together(list(dead.values()))
        for name, error in left_out.items():
            options.tell(f"ensemble: {name} is left out: {error}")
        check_aggregation_can_work(record.settings, left_out)
        yield ask, dead, left_out
    finally:
        await asyncio.gather(*(provider.close() for provider in providers.values()))


def _refuse_double_payment(record: RunRecord, store: AnswerStore, *, give_up: bool) -> None:
    """Refuse to ask questions that a pending batch holds: both would be paid."""
    waiting = [batch for batch in store.batches() if any(map(record.asks, batch.keys.values()))]
    if waiting and not give_up:
        number, llms = sum(len(batch.keys) for batch in waiting), sorted({batch.llm for batch in waiting})
        raise ConfigError(
            f"{number:,} questions wait in a batch of {', '.join(llms)} and would be paid twice: collect it"
            " with batch (--batch), or give it up and ask them again with retry_failed (--retry-failed)"
        )
    for batch in waiting:
        store.give_up_batch(batch)


def _asked(
    store: AnswerStore, record: RunRecord, outcomes: list[AskOutcome], problems: Mapping[str, PairkitError]
) -> Asked:
    unanswered: Counter[str] = Counter()
    details: set[str] = set()
    if any(outcome.failed for outcome in outcomes):
        for failure in store.failures():
            if not failure.final and record.asks(failure.key):
                unanswered[failure.reason] += 1
                if len(details) < 2:
                    details.add(failure.detail)
    # What ended an earlier round may have gone on in the last.
    stopped = next((outcome.stopped_by for outcome in outcomes[-2:] if outcome.stopped_by), None)
    return Asked(
        sum(outcome.cached for outcome in outcomes[:2]),
        sum((outcome.spent for outcome in outcomes), Spending()),
        stopped,
        dict(unanswered),
        problems,
        details.pop() if len(details) == 1 else "",
    )


def generate(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    functions: Mapping[str, LlmFunction],
    *,
    column: str | None = None,
    options: AskOptions = AskOptions(),
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """See `llm_labeler.generate`; notes are printed at once only if `progress` is True."""
    start = time.monotonic()
    notes = Notes(progress)
    work = work or work_beside(out)
    check_apart(out, work)
    record, texts, providers = prepare(source, column, settings, functions)
    notes.add_input(texts, remote_llms(settings, providers))
    check_out(out, record.made_of(), fresh=fresh)
    with (
        held_folder(work, IN_USE),
        AnswerStore.open(work / STORE_FILE, create=True) as store,
        Display(progress) as show,
    ):
        save_run(work, record, texts.texts)
        if cut_off := store.recover():
            notes.add(f"{cut_off} calls were cut off last time; their cost is counted at its bound")
        check_prices(settings.budget, {name: p.prices for name, p in providers.items()}, store.spent())
        screened = ScreenedTexts(store, record, {text.text_id: text for text in texts.texts})
        heard = replace(options, tell=notes.add)
        asking = ask_everything(record, texts.texts, screened, providers, store, heard, show)
        asked = run_anywhere(asking)
        if not options.keep_going:
            refuse_unanswered(
                asked,
                f", or make the dataset without them: parse(work={str(work)!r}, out={str(out)!r}), in the"
                f" shell `label parse --work {work} --out {out}`",
            )
        notes.add_rejected(store, record)
        stopped = _stopped(asked, settings, out, work)
        if stopped:
            notes.add(f"{stopped}; the dataset holds what was answered so far")
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


def _stopped(asked: Asked, settings: LabelSettings, out: Path, work: Path) -> str:
    """Which limit ended a run, and what can be made of it without more money."""
    if not asked.stopped:
        return ""
    found = f"stopped at {asked.stopped} (--{asked.stopped.replace('_', '-')})"
    if not settings.judges or not asked.cached + asked.spent.requests:
        return found
    other = out.with_name(f"{out.name}-unjudged")
    return (
        f"{found}; parse(work={str(work)!r}, out={str(other)!r}, aggregation='union'), in the shell"
        f" `label parse --work {work} --out {other} --aggregation union`, makes a dataset of all proposals,"
        " judged or not"
    )


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
    check_out(out, record.made_of(), fresh=fresh)
    with (
        held_folder(work, IN_USE),
        AnswerStore.open(work / STORE_FILE) as store,
        Display(progress) as show,
    ):
        screened = ScreenedTexts(store, record, {text.text_id: text for text in texts})
        return assemble(
            *(store, record, texts, screened, out, work, Asked(), Notes(progress)),
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
    column: str | None = None,
) -> Plan:
    """See `llm_labeler.plan`."""
    work = work or work_beside(out)
    record, found, providers = prepare(source, column, settings, functions)
    if not (work / STORE_FILE).exists():
        return estimate(record, found.texts, providers, None)
    with AnswerStore.open(work / STORE_FILE) as store:
        return estimate(record, found.texts, providers, store)


def prepare(
    source: Source, column: str | None, settings: LabelSettings, functions: Mapping[str, LlmFunction]
) -> tuple[RunRecord, InputTexts, dict[str, Provider]]:
    """What a run is about, its sentences, and who is asked; refuses what could not work, before any call."""
    if not settings.proposers:
        raise ConfigError("no LLM is named; give llms (--llm), such as chatgpt,llama, or wordnet for rules")
    check_aggregation_can_work(settings)
    template = load_template(settings.prompt, settings.task)
    texts = read_texts(source, column=column, settings=settings.input, seed=settings.seed)
    names = dict.fromkeys((*settings.proposers, *settings.judges))
    providers = {name: build(name, settings.llm[name], functions.get(name)) for name in names}
    remote_llms(settings, providers)
    parameters = {name: (p.parameters, p.parameters_text) for name, p in providers.items()}
    record = RunRecord(settings, template, parameters, texts.name, texts.sha256, texts.dropped)
    return record, texts, providers


def check_aggregation_can_work(settings: LabelSettings, left_out: Collection[str] = ()) -> None:
    """Check before any paid call that the aggregation can yield a pair."""
    aggregation = settings.ensemble.aggregation
    proposers = [name for name in settings.proposers if name not in left_out]
    judges_itself = len(proposers) == 1 and {*settings.judges} - {*left_out} <= {*proposers}
    if not (AGGREGATIONS[aggregation].is_judged and judges_itself):
        return
    raise ConfigError(
        f"aggregation {aggregation}: LLMs don't judge their own sentences, and {proposers[0]} is the only one,"
        " so no pair could result; name more llms (--llm) or judges (--judges), or use aggregation union"
        " (--aggregation union)"
    )


def remote_llms(settings: LabelSettings, providers: Mapping[str, Provider]) -> list[str]:
    """The LLMs that may send text to another machine."""
    names = [name for name, provider in providers.items() if provider.leaves_machine]
    if settings.local_only and names:
        raise ConfigError(
            f"local_only (--local-only): {', '.join(names)} may send text to another machine; where the "
            f"LLM itself runs on this one, set local = true in [llm.{names[0]}]"
        )
    return names


def refuse_unanswered(asked: Asked, otherwise: str = "") -> None:
    """Raise an error if a question failed."""
    if asked.unanswered:
        raise RemoteError(
            f"no answer to {asked.unanswered_counts()}; run the same command again to ask them{otherwise}"
        )


def _with_settings(recorded: RunRecord, settings: LabelSettings) -> RunRecord:
    was = recorded.settings
    if _asked_for(settings) != _asked_for(was):
        raise ConfigError(
            "task, size, samples, prompt and examples are what the LLMs were asked; change them with `label"
            " generate`"
        )
    if unasked := sorted({*settings.proposers, *settings.judges} - set(recorded.parameters)):
        raise ConfigError(f"{', '.join(unasked)} was not asked; ask it with `label generate`")
    return RunRecord(
        settings,
        recorded.template,
        recorded.parameters,
        recorded.source,
        recorded.sha256,
        recorded.dropped_texts,
    )


def _asked_for(settings: LabelSettings) -> tuple[object, ...]:
    prompt = settings.prompt
    return (
        *(settings.task, settings.size, settings.samples),
        *(prompt.template, prompt.examples, prompt.changes),
    )
