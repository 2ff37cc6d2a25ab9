"""`label generate`, `parse` and `plan`: estimate a run, ask its questions, and make the dataset from all answers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from llm_labeler.clients.llms import (
    Provider,
    build_all,
    parameters_of,
    read_arguments,
)
from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.dispatch.answer_store import QUESTIONS, AnswerStore
from llm_labeler.dispatch.budget import Spending, check_prices
from llm_labeler.records import Ask, Text, TokenUsage
from llm_labeler.runs.asking import (
    LabelCall,
    ask_everything,
    check_aggregation_can_work,
    open_session,
    refuse_unanswered,
    remote_llms,
)
from llm_labeler.runs.assemble import assemble
from llm_labeler.runs.label_folder import (
    IN_USE,
    STORE_FILE,
    RunRecord,
    check_out,
    load_run,
    save_run,
)
from llm_labeler.runs.prompts import load_template
from llm_labeler.runs.questions_and_votes import GenerationTask, ScreenedTexts
from llm_labeler.runs.run_result import AskSummary, Estimate, Labelled, Notes, Plan
from llm_labeler.settings import BudgetSettings, LabelSettings
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import ConfigError, DataError, by_reader
from pairkit.base.openai_api.channel import run_anywhere
from pairkit.base.system.folders import check_apart, lock_folder
from pairkit.base.system.machine import batched

_BYTES_PER_TOKEN = 4  # of English; other scripts have fewer
# Length of a sentence in an answer relative to its text, with its number and line break.
_EXPANSION = 1.3
_JUDGE_TOKENS = 250  # of a judge's prompt without its sentences
_VOTE_TOKENS = 6


def generate(call: LabelCall) -> Labelled:
    """See `llm_labeler.generate`."""
    start = time.monotonic()
    notes = Notes(call.progress)
    record, texts, providers = prepare(call)
    check_out(call.out, record.run_json(), fresh=call.fresh)
    _note_input(call.settings, texts, remote_llms(call.settings, providers), notes)
    with open_session(record, providers, call, notes.add) as session:
        save_run(call.work, record, texts.texts)
        store = session.store
        is_limited = call.settings.budget != BudgetSettings()
        if is_limited and not call.batch:  # which costs half
            for line in estimate(record, texts.texts, providers, store).short_of():
                notes.add(line)
        screened = ScreenedTexts(store, record, texts.texts)
        asked = run_anywhere(ask_everything(session, texts.texts, screened))
        if not call.keep_going:
            command = _parse_command(call, call.out)
            refuse_unanswered(asked, f", or make the dataset without them: {command}")
        rejected = sum(f.final and record.asks(f.key) for f in store.failures())
        if rejected:
            notes.add(
                f"{rejected:,} questions were rejected by their server and not repeated;"
                " --retry-failed repeats them"
            )
        stopped = _stopped(asked, call)
        if stopped:
            notes.add(f"{stopped}; the dataset has the answers so far")
        try:
            return assemble(
                screened,
                call.work,
                call.out,
                asked,
                notes,
                started=start,
                show=session.show,
            )
        except DataError as error:
            if not stopped:
                raise
            raise DataError(f"{error}; {stopped}") from error


def _note_input(
    settings: LabelSettings, texts: InputTexts, remote: Sequence[str], notes: Notes
) -> None:
    """Note unused rows and judges, LLMs on other machines, and rules that know another language."""
    for reason, count in texts.dropped.items():
        notes.add(
            f"{texts.examples[reason]}: not used, {reason} ({count:,} such rows; see the [input] settings)"
        )
    if remote:
        notes.add(f"the sentences may leave this machine: {', '.join(remote)}")
    if settings.judge.llms and not settings.judges:
        notes.add(
            f"{', '.join(settings.judge.llms)} won't judge: aggregation"
            f" {settings.ensemble.aggregation} needs no judges; give --aggregation=vote"
            " or weighted"
        )
    if any(settings.llm[name].is_rules for name in settings.proposers):
        from llm_labeler.clients.wordnet import language_warning

        warning = language_warning([text.text for text in texts.texts])
        if warning:
            notes.add(warning)


def _stopped(asked: AskSummary, call: LabelCall) -> str:
    """The limit that stopped a run, and how to use unjudged proposals; empty if no limit did."""
    if not asked.stopped:
        return ""
    limit = f"stopped at --{asked.stopped.replace('_', '-')}"
    if not call.settings.judges or not asked.cached + asked.spent.requests:
        return limit
    unjudged = call.out.with_name(f"{call.out.name}-unjudged")
    command = _parse_command(call, unjudged, aggregation="union")
    return f"{limit}; {command} makes a dataset of all proposals, judged or not"


def _parse_command(call: LabelCall, out: Path, **more: str) -> str:
    """The call of `parse`, which replaces what the run may replace."""
    python = []
    words = ["label", "parse"]
    for name, value in {"work": str(call.work), "out": str(out), **more}.items():
        python.append(f"{name}={value!r}")
        words += [f"--{name}", value]
    if call.fresh:
        python.append("fresh=True")
        words.append("--fresh")
    python_call = f"llm_labeler.parse({', '.join(python)})"
    return by_reader(shell=shlex.join(words), python=python_call)


def prepare(call: LabelCall) -> tuple[RunRecord, InputTexts, dict[str, Provider]]:
    """Check the arguments before any call; return the run's record, its sentences and its LLMs."""
    settings = call.settings
    check_aggregation_can_work(settings)
    template = load_template(settings.prompt, settings.task)
    texts = read_texts(
        call.source, columns=call.columns, settings=settings.input, seed=settings.seed
    )
    names = (*settings.proposers, *settings.judges)
    providers = build_all(names, settings, call.functions)
    remote_llms(settings, providers)  # refused with local_only
    parameters = parameters_of(providers)
    record = RunRecord(
        settings, template, parameters, texts.name, texts.sha256, texts.dropped
    )
    return record, texts, providers


def parse(
    work: Path,
    out: Path,
    changes: Mapping[str, object],
    settings: Mapping[str, object] | Iterable[str] | None,
    *,
    fresh: bool,
    progress: bool | Listener,
) -> Labelled:
    """See `llm_labeler.parse`."""
    start = time.monotonic()
    check_apart(out, work)
    recorded, texts = load_run(work)
    below = recorded.settings.model_dump(mode="json")
    changed, _ = read_arguments(changes, below=below, settings=settings)
    record = _with_settings(recorded, changed)
    check_out(out, record.run_json(), fresh=fresh)
    with (
        lock_folder(work, IN_USE),
        AnswerStore(work / STORE_FILE) as store,
        Display(progress) as show,
    ):
        screened = ScreenedTexts(store, record, texts, recorded)
        notes = Notes(progress)
        return assemble(
            screened, work, out, AskSummary(), notes, started=start, show=show
        )


def _with_settings(recorded: RunRecord, settings: LabelSettings) -> RunRecord:
    """The record with settings that change no question."""
    asked = recorded.parameters
    changed = _question_settings(settings, asked)
    if changed != _question_settings(recorded.settings, asked):
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


def _question_settings(
    settings: LabelSettings, llms: Iterable[str]
) -> tuple[object, ...]:
    prompt = settings.prompt
    return (
        settings.task,
        settings.size,
        settings.samples,
        settings.input,
        [settings.llm[name] for name in llms],
        (prompt.template, prompt.examples, prompt.changes),
        settings.judge.candidates_per_call,
    )


def plan(call: LabelCall) -> Plan:
    """See `llm_labeler.plan`."""
    record, texts, providers = prepare(call)
    path = call.work / STORE_FILE
    with AnswerStore(path) if path.exists() else nullcontext() as store:
        estimated = estimate(record, texts.texts, providers, store)
    prices = {name: llm.prices for name, llm in providers.items()}
    check_prices(estimated.limits, prices, estimated.spent)
    return estimated


def estimate(
    record: RunRecord,
    texts: tuple[Text, ...],
    providers: Mapping[str, Provider],
    store: AnswerStore | None,
) -> Plan:
    """Count the unanswered questions and estimate their tokens and cost."""
    estimates = [
        _estimate_llm(record, texts, provider, store) for provider in providers.values()
    ]
    spent = Spending() if store is None else store.spent()
    budget = record.settings.budget
    return Plan(len(texts), record.dropped_texts, tuple(estimates), budget, spent)


def _estimate_llm(
    record: RunRecord,
    texts: tuple[Text, ...],
    provider: Provider,
    store: AnswerStore | None,
) -> Estimate:
    settings = record.settings
    task = GenerationTask(record)
    is_proposer = provider.name in settings.proposers
    questions = 0
    asks: Iterable[Ask] = ()
    if is_proposer:
        questions = len(texts) * task.questions_per_text(provider.name)
        asks = task.asks(texts, provider.name)
    missing = 0
    likely = TokenUsage(0, 0)
    at_most = TokenUsage(0, 0)
    for batch in batched(asks, QUESTIONS):
        for ask in store.unanswered(batch) if store else batch:
            missing += 1
            bound = provider.max_usage(ask)
            at_most += bound
            if bound.total:  # rules use no tokens
                likely += _likely_usage(ask)
    judge_calls = 0
    if provider.name in settings.judges:
        others = len(settings.proposers) - is_proposer
        candidates = others * settings.size * settings.samples
        candidates *= len(settings.prompt.polarities)
        calls = -(-candidates // settings.judge.candidates_per_call)
        unjudged_share = missing / questions if questions else 1.0
        judge_calls = round(calls * len(texts) * unjudged_share)
        likely += _judging(texts, candidates, calls, unjudged_share)
    return Estimate(
        llm=provider.name,
        model=provider.model,
        questions=questions,
        missing=missing,
        judge_calls=judge_calls,
        tokens=likely.total,
        at_most=at_most.total,
        cost=provider.prices.cost(likely),
        cost_at_most=provider.prices.cost(at_most),
        leaves_machine=provider.leaves_machine,
    )


def _likely_usage(ask: Ask) -> TokenUsage:
    prompt = "".join(message.content for message in ask.messages)
    prompt_bytes = len(prompt.encode("utf-8", "replace"))
    answer_bytes = ask.size * len(ask.text.encode("utf-8", "replace")) * _EXPANSION
    return TokenUsage(
        round(prompt_bytes / _BYTES_PER_TOKEN), round(answer_bytes / _BYTES_PER_TOKEN)
    )


def _judging(
    texts: tuple[Text, ...], candidates: int, calls: int, share: float
) -> TokenUsage:
    """Likely tokens for judging a share of the texts, by the numbers of each."""
    characters = sum(len(text.text) for text in texts)
    instructions = calls * _JUDGE_TOKENS * len(texts)
    sentences = (calls + candidates) * characters / _BYTES_PER_TOKEN
    votes = candidates * _VOTE_TOKENS * len(texts)
    prompt = instructions + sentences
    return TokenUsage(round(prompt * share), round(votes * share))
