"""Ask the unanswered questions of a run, then make the dataset from all answers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from llm_labeler.clients.llms import Provider, build_all, parameters_of
from llm_labeler.dataset.texts import InputTexts, read_texts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.runs.arguments import LabelCall
from llm_labeler.runs.asking import (
    ask_everything,
    check_aggregation_can_work,
    open_session,
    refuse_unanswered,
    remote_llms,
)
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
    ScreenedTexts,
)
from llm_labeler.runs.run_result import AskSummary, Labelled
from llm_labeler.settings import BudgetSettings, LabelSettings
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import (
    ConfigError,
    DataError,
    by_reader,
)
from pairkit.base.openai_api.channel import run_anywhere
from pairkit.base.system.folders import check_apart, lock_folder


def generate(call: LabelCall) -> Labelled:
    """See `llm_labeler.generate`."""
    start = time.monotonic()
    notes = Notes(call.progress)
    record, texts, providers = prepare(call)
    notes.add_input(texts, remote_llms(call.settings, providers))
    check_out(call.out, record.run_json(), fresh=call.fresh)
    _note_unused(call.settings, texts, notes)
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
            command = _parse_command(call.work, call.out)
            refuse_unanswered(asked, f", or make the dataset without them: {command}")
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


def _note_unused(settings: LabelSettings, texts: InputTexts, notes: Notes) -> None:
    """Note judges that don't judge, and rules that know another language."""
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
    remote_llms(settings, providers)  # refused with local_only
    parameters = parameters_of(providers)
    record = RunRecord(
        settings, template, parameters, texts.name, texts.sha256, texts.dropped
    )
    return record, texts, providers


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
