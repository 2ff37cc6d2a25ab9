"""The whole way from sentences to a dataset: ask what is missing, then make of the answers what they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_labeler._assemble import Assembled, assemble
from llm_labeler._budget import Spending, check_prices
from llm_labeler._dataset import check_out
from llm_labeler._ensemble import Judges
from llm_labeler._plan import Plan, estimate, refuse_fruitless
from llm_labeler._prompts import load_template
from llm_labeler._provider import Provider
from llm_labeler._providers import build
from llm_labeler._session import Asked, How, Show, ask_everything
from llm_labeler._settings import LabelSettings
from llm_labeler._store import Store
from llm_labeler._texts import Texts, read_texts
from llm_labeler._workplace import (
    IN_USE,
    STORE_FILE,
    RunRecord,
    any_of,
    recall,
    remember,
)
from pairkit.config import load_settings
from pairkit.errors import ConfigError, RemoteError
from pairkit.folders import check_apart, held_folder, work_beside
from pairkit.openai_api.loops import run_anywhere

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A finished run."""

    out: Path
    work: Path
    statistics: Mapping[str, Any]
    dropped: Mapping[str, int]
    judges: Judges | None
    asked: Asked
    spent: Spending  # by this session
    spent_in_all: Spending
    seconds: float

    @property
    def problem(self) -> RemoteError | None:
        """What the dataset lacks; None where nothing failed."""
        asked = self.asked
        missing = [f"{llm} ({error})" for llm, error in asked.problems.items()]
        if asked.unanswered:
            missing.append(f"{sum(asked.unanswered.values()):,} questions ({any_of(asked.unanswered)})")
        if not missing:
            return None
        told = "; ".join(missing)
        return RemoteError(f"{self.out} is made without all answers of {told}; run the same command again")

    @property
    def positives(self) -> int:
        """Pairs of the same meaning in all splits."""
        return self._count("positive")

    @property
    def negatives(self) -> int:
        """Pairs of opposite meaning in all splits."""
        return self._count("negative")

    def _count(self, polarity: str) -> int:
        return sum(split[polarity] for split in self.statistics["splits"].values())

    def summary(self) -> dict[str, Any]:
        """The result as one object for scripts."""
        return {
            "out": str(self.out),
            "texts": self.statistics["texts"],
            "calls": self.spent.requests,
            "cached": self.asked.cached,
            "pairs": self.positives + self.negatives,
            "positives": self.positives,
            "negatives": self.negatives,
            "dropped": dict(sorted(self.dropped.items())),
            "cost": self.spent.cost,
            "tokens": self.spent.tokens,
            "seconds": round(self.seconds, 3),
            "cost_in_all": self.spent_in_all.cost,
            "stopped": self.asked.stopped,
        }


def generate(
    source: str,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    *,
    column: str | None = None,
    how: How = How(),  # noqa: B008 - frozen
    fresh: bool = False,
    say: Say = lambda _: None,
    show: Show = lambda _: None,
) -> Labelled:
    """Label the sentences of `source`; called again after whatever happened, it asks only what is missing.

    Args:
        source: See `llm_labeler._texts.read_texts`.
        out: The dataset's folder.
        work: The folder of answers; None: OUT.work.
        settings: Everything that can be set.
        column: The column of the sentences.
        how: Ways of asking.
        fresh: Replace a dataset made with other settings.
        say: Told of what people should know.
        show: Told how asking goes on.

    Raises:
        ConfigError: a setting, key, model or folder is unusable, or the strategy could give no pair.
        DataError: no usable sentence, a damaged store, or no pair is left.
        RemoteError: a server failed, and the run is not to keep going; running again goes on.
    """
    start = time.monotonic()
    work = work or work_beside(out)
    check_apart(out, work)
    record, texts, providers = _prepare(source, column, settings)
    for reason, count in texts.dropped.items():
        say(f"{texts.examples[reason]}: not used, {reason} ({count:,} such rows; see the [input] settings)")
    if leaving := [name for name, provider in providers.items() if provider.leaves_machine]:
        say(f"the sentences may leave this machine: {', '.join(leaving)}")
    check_out(out, record.made_of(), fresh=fresh)
    with held_folder(work, IN_USE), Store.open(work / STORE_FILE, create=True) as store:
        remember(work, record, texts.texts)
        if cut_off := store.recover():
            say(f"{cut_off} calls were cut off last time; their cost is counted at its bound")
        before = store.spent()
        check_prices(settings.budget, {name: p.prices for name, p in providers.items()}, before)
        _keep_words(store, record)
        asked = run_anywhere(ask_everything(record, texts.texts, providers, store, how=how, show=show))
        if not how.keep_going:
            _refuse_unanswered(asked, out, work)
        if rejected := sum(failure.final and record.asks(failure.key) for failure in store.failures()):
            say(
                f"{rejected:,} questions were rejected for good and not asked again; --retry-failed asks them"
            )
        if asked.stopped:
            say(f"stopped at --{asked.stopped.replace('_', '-')}; the dataset holds what was answered so far")
        say("making pairs")
        assembled = assemble(store, record, texts.texts, out, work)
        in_all = store.spent()
    return _labelled(out, work, assembled, asked, _difference(in_all, before), in_all, start)


def parse(
    out: Path,
    work: Path,
    assignments: Iterable[str] = (),
    *,
    flags: Mapping[str, Any] | None = None,
    fresh: bool = False,
) -> Labelled:
    """Make the dataset once more from the stored answers; asks nobody.

    Args:
        out: The dataset's folder.
        work: The folder of answers.
        assignments: `key=value` settings that differ from the run's.
        flags: The same by dotted name; None: as in the run.
        fresh: Replace a dataset made with other settings.

    Raises:
        ConfigError: no such folder, an output that can't be replaced, or a setting that asking hangs on.
        DataError: a damaged store, or no pair is left.
    """
    start = time.monotonic()
    check_apart(out, work)
    recorded, texts = recall(work)
    below = recorded.settings.model_dump(mode="json")
    settings = load_settings(LabelSettings, below=below, assignments=assignments, flags=flags)
    record = _with_settings(recorded, settings)
    check_out(out, record.made_of(), fresh=fresh)
    with held_folder(work, IN_USE), Store.open(work / STORE_FILE) as store:
        assembled = assemble(store, record, texts, out, work)
        in_all = store.spent()
    return _labelled(out, work, assembled, Asked(), Spending(), in_all, start)


def plan(
    source: str, out: Path, work: Path | None, settings: LabelSettings, *, column: str | None = None
) -> Plan:
    """What `generate` would ask and cost; asks nobody.

    Raises:
        ConfigError: a setting or key is unusable.
        DataError: no usable sentence, or a damaged store.
    """
    work = work or work_beside(out)
    record, texts, providers = _prepare(source, column, settings)
    if not (work / STORE_FILE).exists():
        return estimate(record, texts.texts, providers, None)
    with Store.open(work / STORE_FILE) as store:
        return estimate(record, texts.texts, providers, store)


def _prepare(
    source: str, column: str | None, settings: LabelSettings
) -> tuple[RunRecord, Texts, dict[str, Provider]]:
    refuse_fruitless(settings)
    template = load_template(settings.prompt)
    texts = read_texts(source, column=column, settings=settings.input)
    names = dict.fromkeys((*settings.proposers, *settings.judges))
    providers = {name: build(name, settings.llm[name]) for name in names}
    leaving = [name for name, provider in providers.items() if provider.leaves_machine]
    if settings.local_only and leaving:
        raise ConfigError(
            f"--local-only: {', '.join(leaving)} may send text to another machine; where the LLM itself runs "
            f"on this one, set local = true in [llm.{leaving[0]}]"
        )
    parameters = {name: (p.parameters, p.parameters_text) for name, p in providers.items()}
    record = RunRecord(settings, template, parameters, texts.name, texts.sha256, texts.dropped)
    return record, texts, providers


def _keep_words(store: Store, record: RunRecord) -> None:
    """What the hashes in the answers' keys stand for, so that the store explains itself."""
    for digest, words in record.parameters.values():
        store.save_parameters(digest, words)
    for polarity in record.settings.prompt.polarities:
        prompt_hash = record.template.prompt_hash(record.settings.size, polarity)
        store.save_prompt(prompt_hash, record.template.words(polarity))


def _refuse_unanswered(asked: Asked, out: Path, work: Path) -> None:
    if not asked.unanswered:
        return
    number = sum(asked.unanswered.values())
    raise RemoteError(
        f"{number:,} questions got no answer ({any_of(asked.unanswered)}); run the same command again to ask "
        f"them, or `label parse --work {work} --out {out}` for a dataset without them"
    )


def _with_settings(recorded: RunRecord, settings: LabelSettings) -> RunRecord:
    was = recorded.settings
    if (settings.size, settings.prompt.template) != (was.size, was.prompt.template):
        raise ConfigError("size and prompt are what the LLMs were asked; change them with `label generate`")
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


def _difference(after: Spending, before: Spending) -> Spending:
    return Spending(
        after.requests - before.requests,
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        after.picodollars - before.picodollars,
        after.unpriced - before.unpriced,
        after.estimated - before.estimated,
    )


def _labelled(
    out: Path,
    work: Path,
    assembled: Assembled,
    asked: Asked,
    spent: Spending,
    in_all: Spending,
    start: float,
) -> Labelled:
    return Labelled(
        out,
        work,
        assembled.statistics,
        assembled.dropped,
        assembled.judges,
        asked,
        spent,
        in_all,
        time.monotonic() - start,
    )
