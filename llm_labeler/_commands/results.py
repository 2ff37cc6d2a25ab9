"""What the commands of `label` print."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text as Words

from pairkit.card import table as markdown_table
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, progress, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from llm_labeler._ensemble import Judges
    from llm_labeler._label import Labelled
    from llm_labeler._plan import Plan
    from llm_labeler._provider import Provider
    from llm_labeler._score import ScoreReport
    from llm_labeler._session import Stage
    from llm_labeler._settings import LabelSettings
    from llm_labeler._show import Shown


def money(cost: float | None) -> str:
    """US dollars for people; an unknown price is said to be one."""
    if cost is None:
        return "unknown"
    return "$0" if not cost else f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


class Display:
    """A bar for each stage on stderr: done, failed, tokens, cost and time left."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Progress = progress(quiet=quiet)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Callable[[Stage], None]:
        self._bar.start()
        return self.show

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, stage: Stage) -> None:
        """Bring the stage's bar up to date."""
        at = stage.progress
        if stage.name not in self._tasks:
            self._tasks[stage.name] = self._bar.add_task(stage.name, total=at.total, note="")
        failed = f", {at.failed} failed" if at.failed else ""
        retried = f", {at.retried} repeated" if at.retried else ""
        note = f"{at.spent.tokens:,} tokens, {money(at.spent.cost)}{failed}{retried}"
        completed = at.done + at.cached + at.failed
        self._bar.update(self._tasks[stage.name], completed=completed, total=at.total, note=note)


def show_labelled(labelled: Labelled, *, as_json: bool, quiet: bool) -> None:
    """The summary of a run."""
    for warning in labelled.statistics.get("warnings", ()):
        say(f"warning: {warning}", quiet=quiet)
    if labelled.judges is not None and not as_json:
        stdout.print(judges_table(labelled.judges))
        why = f" ({labelled.judges.reason})" if labelled.judges.reason else ""
        alpha = labelled.judges.alpha
        agreement = "undefined" if alpha is None else f"{alpha:.2f}"
        stdout.print(f"weighed by {labelled.judges.method}{why}; Krippendorff's alpha {agreement}")
    if as_json:
        print_json(labelled.summary())
        return
    stdout.print(_summary_table(labelled))
    say(f"why rows were dropped: label report --work {labelled.work}", quiet=quiet)


def _summary_table(labelled: Labelled) -> Table:
    table = Table(title=str(labelled.out), title_justify="left", show_header=True)
    for title in ("split", "texts", "positive", "negative", "triplets"):
        table.add_column(title, justify="left" if title == "split" else "right")
    for split, counts in labelled.statistics["splits"].items():
        table.add_row(split, *(f"{counts[name]:,}" for name in ("texts", "positive", "negative", "triplets")))
    spent = labelled.spent
    dropped = sum(labelled.dropped.values())
    table.caption = (
        f"{spent.requests:,} calls ({labelled.asked.cached:,} answered before), {spent.tokens:,} tokens, "
        f"{money(spent.cost)}; {dropped:,} dropped; {labelled.seconds:.1f} s"
    )
    return table


def judges_table(judges: Judges) -> Table:
    """Each judge's record."""
    table = Table(title="judges", title_justify="left")
    for title in ("judge", "judged", "unsure", "accuracy", "agrees with"):
        table.add_column(title, justify="left" if title in ("judge", "agrees with") else "right")
    for name, judge in sorted(judges.by_name.items()):
        shares = [
            f"{pair.other if pair.one == name else pair.one} {pair.share:.0%}"
            for pair in judges.agreements
            if name in (pair.one, pair.other)
        ]
        table.add_row(
            name, f"{judge.judged:,}", f"{judge.unsure:,}", f"{judge.accuracy:.2f}", ", ".join(shares)
        )
    return table


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """What a run would ask and cost."""
    if as_json:
        print_json(plan.to_dict())
        return
    from llm_labeler._budget import PROMISE

    table = Table(title=f"{plan.texts:,} sentences", title_justify="left")
    for title in ("LLM", "missing", "tokens", "at most", "cost", "at most", "text"):
        table.add_column(title, justify="left" if title in ("LLM", "text") else "right")
    for one in plan.estimates:
        table.add_row(
            one.llm,
            f"{one.missing:,} of {one.questions:,}",
            f"{one.tokens:,}",
            f"{one.at_most:,}",
            money(one.cost),
            money(one.cost_at_most),
            "may leave" if one.leaves_machine else "stays",
        )
    table.caption = f"at most: the bound. {PROMISE}"
    stdout.print(table)


def show_llms(settings: LabelSettings) -> None:
    """The LLMs that a configuration describes."""
    from llm_labeler._providers import build
    from llm_labeler._providers.prices import AS_OF

    rows = []
    for name, llm in sorted(settings.llm.items()):
        provider = build(name, llm)
        prices = provider.prices
        told = ["unknown" if price is None else f"{price:g}" for price in (prices.prompt, prices.completion)]
        rows.append((name, llm.kind, llm.model, llm.base_url or "-", _key(provider), " / ".join(told)))
    heading = ("name", "kind", "model", "server", "key", "$ per million tokens in / out")
    stdout.print(markdown_table(heading, rows), markup=False)
    stdout.print(f"prices that no configuration states are of {AS_OF}", markup=False)


def _key(provider: Provider) -> str:
    variable = provider.key_variable
    if variable is None:
        return "none"
    return f"{variable} {'set' if os.environ.get(variable) else 'not set'}"


def show_score(report: ScoreReport) -> None:
    """Labels compared with people's."""
    heading, *rows = report.table()
    stdout.print(markdown_table(heading, rows), markup=False)  # as wide as it is: a terminal would cut it
    stdout.print(
        f"{report.found:,} of {report.gold:,} gold pairs are candidates; from {report.threshold:g} on "
        "they mean the same"
    )
    for strategy, why in report.skipped.items():
        stdout.print(f"{strategy}: not computed, {why}", markup=False)
    for name, finding in (("not found", report.not_found), ("contradictory", report.contradictory)):
        if finding.count:
            stdout.print(f"{finding.count:,} gold pairs {name}, such as {finding.examples[0]}", markup=False)


def show_sentence(shown: Shown) -> None:
    """One sentence with all that is known of it."""
    stdout.print(f"{shown.text.text_id}  row {shown.text.row}", markup=False)
    stdout.print(shown.text.text, markup=False)
    for polarity, messages in shown.prompts.items():
        _heading(f"prompt, {polarity}")
        for role, words in messages:
            stdout.print(f"{role}: {words}", markup=False)
    for answer in shown.answers:
        key, reply = answer.key, answer.reply
        _heading(f"answer of {key.llm}, {key.task} ({reply.finish}; prompt {key.prompt_hash})")
        stdout.print(reply.raw or "(empty)", markup=False)
    for failure in shown.failures:
        _heading(f"no answer of {failure.key.llm}, {failure.key.task}")
        stdout.print(f"{failure.reason} after {failure.attempts} calls: {failure.detail}", markup=False)
    if shown.evidence is not None:
        _heading("proposals")
        for proposal in shown.evidence.proposals:
            mark = "kept" if proposal.reason is None else proposal.reason
            stdout.print(f"{proposal.llm} {proposal.polarity} [{mark}] {proposal.candidate}", markup=False)
    for place, pair in enumerate(shown.pairs):
        if not place:
            _heading("pairs")
        votes = ", ".join(f"{vote.judge}: {vote.verdict}" for vote in pair.votes)
        mark = pair.reason or f"{pair.polarity}, label {pair.label:g}"
        stdout.print(f"[{mark}] {pair.candidate.candidate}{f'  ({votes})' if votes else ''}", markup=False)


def _heading(words: str) -> None:
    stdout.print()
    stdout.print(Words(words, style="bold"))
