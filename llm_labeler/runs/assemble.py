"""From stored answers to the dataset and the table of candidates; asks nobody, and never needs to."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llm_labeler.dataset.rows import DatasetRows
from llm_labeler.dataset.split import split_texts
from llm_labeler.dataset.write import write
from llm_labeler.judging.ensemble import StrategyFunction, label, own_strategy
from llm_labeler.judging.judges import Judges
from llm_labeler.parsing.filters import BESIDE
from llm_labeler.records import Proposal, Text
from llm_labeler.runs.tasks import TextCandidates, estimate_judges, task_of, with_votes
from llm_labeler.settings.kinds import TASKS, strategy_of
from llm_labeler.store import AnswerStore
from llm_labeler.store.run_folder import CANDIDATES_FILE, RunRecord
from pairkit.app.progress import Listener, Progress

_FEWEST = 3  # fewer tell nothing


class QualityWarnings:
    """Counts of proposals and answers by LLM, text by text, and the warnings that follow."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._beside: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    def add(self, proposals: Iterable[Proposal], answers: Counter[str]) -> None:
        """Take in one text's proposals, and how many answers they come from, by LLM."""
        self._answers.update(answers)
        for proposal in proposals:
            self._kept[proposal.llm] += proposal.reason is None
            self._beside[proposal.llm] += proposal.reason in BESIDE
            self._spent[proposal.llm] += proposal.reason == "limit_spent"

    def warnings(self) -> tuple[str, ...]:
        """One line for each doubt, by LLM."""
        return tuple(line for llm in sorted(self._answers) for line in self._about(llm))

    def _about(self, llm: str) -> list[str]:
        found: list[str] = []
        beside, judged = self._beside[llm], self._beside[llm] + self._kept[llm]
        if beside >= _FEWEST and 2 * beside > judged:
            found.append(
                f"{llm}: {beside:,} of {judged:,} sentences have little to do with their texts"
                f" ({', '.join(BESIDE)}); it may answer them instead of rewriting them: look at some with"
                " `label show`, and try prompt hardened (--prompt hardened)"
            )
        spent, answers = self._spent[llm], self._answers[llm]
        if spent >= _FEWEST and 2 * spent > answers:
            found.append(
                f"{llm}: {spent:,} of {answers:,} answers spent their token limit before they began, as a"
                f" rule on reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )
        return found


_REPORT_EVERY = 256  # texts


@dataclass(frozen=True, slots=True)
class Assembled:
    """A dataset that was written, and how it came about."""

    statistics: dict[str, Any]
    judges: Judges | None
    dropped: Mapping[str, int]
    warnings: tuple[str, ...]  # what people should know before they use it


def assemble(
    store: AnswerStore,
    record: RunRecord,
    texts: Sequence[Text],
    screened: Iterable[TextCandidates],
    out: Path,
    work: Path,
    *,
    strategy: StrategyFunction | None = None,
    show: Listener = lambda _: None,
) -> Assembled:
    """Parse, screen, label and split what is stored; write the dataset, and WORK/candidates.parquet."""
    settings = record.settings
    by_id = {text.text_id: text for text in texts}
    judges = estimate_judges(screened, store, record)  # first: `weighted` goes by all votes
    triplets = TASKS[settings.task].triplets
    rows = DatasetRows(settings.ensemble.strategy, settings.seed, triplets=triplets)
    ids = sorted(by_id)
    owners = array("i", range(len(ids)))  # of the texts, and of all candidates that may become rows
    dropped: Counter[str] = Counter()
    doubts = QualityWarnings()
    answers = unjudged = proposals = 0
    for number, about in enumerate(with_votes(screened, store, record)):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, len(texts)))
        decide = own_strategy(strategy, about.text.text) if strategy else None
        pairs = label(about.candidates, about.votes, settings.ensemble, judges, decide)
        rows.add(about.text, pairs)
        doubts.add(about.proposals, about.answers)
        emitted = sum(pair.reason is None for pair in pairs)
        owners.extend([bisect_left(ids, about.text.text_id)] * emitted)
        dropped.update(item.reason for item in about.proposals if item.reason is not None)
        answers, unjudged = answers + about.answers.total(), unjudged + about.unjudged
        proposals += len(about.proposals)
    show(Progress("making pairs", len(texts), len(texts), ended=True))
    rows.write_candidates(work / CANDIDATES_FILE)
    sentences = rows.emitted([by_id[text_id] for text_id in ids])
    del by_id
    splits = split_texts(ids, sentences, np.array(owners), settings.split, settings.seed)
    del sentences, owners
    wanted = len(texts) * sum(map(task_of(record).questions_a_text, settings.proposers))
    rejected = _rejected(store, record)
    counts = {
        **{f"text_{reason}": count for reason, count in record.dropped_texts.items()},
        **dropped,
        "answer_rejected": rejected,
        "not_answered": wanted - answers - rejected,
        "not_judged": unjudged,
    }
    dropped_before = {reason: count for reason, count in sorted(counts.items()) if count}
    statistics = write(
        out,
        rows,
        dict(zip(ids, splits, strict=True)),
        graded=strategy_of(settings.ensemble.strategy).is_graded,
        statistics={
            "texts": len(texts),
            "answers": answers,
            "proposals": proposals,
            "candidates": rows.candidates,
            "dropped": dropped_before,
            "warnings": [*doubts.warnings()],
            **({"judges": judges.to_dict()} if judges else {}),
        },
        run=record.made_of(),
    )
    return Assembled(statistics, judges, {**dropped_before, **rows.dropped}, doubts.warnings())


def _rejected(store: AnswerStore, record: RunRecord) -> int:
    """Questions that a server turned down for good."""
    task = task_of(record)
    return sum(failure.final and task.is_of_run(failure.key) for failure in store.failures())
