"""Make the dataset from stored answers, without a call."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from llm_labeler.dataset.label_card import write
from llm_labeler.dataset.label_splits import DatasetRows, split_texts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.judging.ensemble import Judges, label
from llm_labeler.records import LabelledPair, Text
from llm_labeler.runs.label_folder import CANDIDATES_FILE, RunRecord
from llm_labeler.runs.notes import Notes, QualityWarnings
from llm_labeler.runs.questions_and_votes import (
    GenerationTask,
    ScreenedTexts,
    TextCandidates,
)
from llm_labeler.runs.run_result import AskSummary, Labelled
from llm_labeler.settings import AGGREGATIONS
from pairkit.base.cli.progress import Listener, Progress

_REPORT_EVERY = 256  # texts


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with its stored answers."""

    store: AnswerStore
    record: RunRecord
    texts: Sequence[Text]
    screened: ScreenedTexts
    work: Path


def assemble(
    run: StoredRun,
    out: Path,
    asked: AskSummary,
    notes: Notes,
    *,
    started: float,
    show: Listener,
) -> Labelled:
    """Parse, filter, label and split the stored answers; write the dataset and WORK/candidates.parquet."""
    settings = run.record.settings
    # Before the pairs are labelled, as `weighted` needs all votes.
    judges = run.screened.judges()
    collected = _collect(run, judges, show)
    collected.rows.write_candidates(run.work / CANDIDATES_FILE)
    dropped = _dropped(run, collected)
    warnings = collected.quality.warnings()
    statistics = {
        "texts": len(collected.ids),
        "answers": collected.answers,
        "proposals": collected.proposals,
        "candidates": collected.rows.candidates,
        "dropped": dropped,
        "warnings": [*warnings],
    }
    if judges:
        statistics["judges"] = judges.to_dict()
    statistics = write(
        out,
        collected.rows,
        _splits(run, collected),
        graded=AGGREGATIONS[settings.ensemble.aggregation].is_graded,
        statistics=statistics,
        run=run.record.run_json(),
    )
    for warning in warnings:
        notes.add(f"warning: {warning}")
    return Labelled(
        out=out,
        work=run.work,
        statistics=statistics,
        judges=judges,
        asked=asked,
        dropped={**dropped, **collected.rows.dropped},
        spent_in_all=run.store.spent(),
        seconds=time.monotonic() - started,
        messages=tuple(notes),
    )


@dataclass(slots=True)
class _Collected:
    """The pairs of a run, and the counts of what was dropped."""

    ids: list[str]  # of the texts, sorted
    rows: DatasetRows
    quality: QualityWarnings
    # The index of the text: of each text itself, then of each candidate that may become a row.
    text_indices: array[int]
    dropped: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    proposals: int = 0

    def add(self, text: TextCandidates, pairs: Sequence[LabelledPair]) -> None:
        """Add the pairs of one text."""
        self.rows.add(text.text, pairs)
        self.quality.add(text.text.text, text.proposals, text.answers)
        kept = sum(pair.reason is None for pair in pairs)
        self.text_indices.extend([bisect_left(self.ids, text.text.text_id)] * kept)
        self.answers += text.answers.total()
        self.proposals += len(text.proposals)
        reasons = (proposal.reason for proposal in text.proposals)
        self.dropped.update(reason for reason in reasons if reason is not None)
        self.dropped["not_judged"] += text.unjudged


def _collect(run: StoredRun, judges: Judges | None, show: Listener) -> _Collected:
    settings = run.record.settings
    ids = sorted(text.text_id for text in run.texts)
    has_triplets = settings.labelling.makes_triplets
    collected = _Collected(
        ids=ids,
        rows=DatasetRows(
            settings.ensemble.aggregation, settings.seed, triplets=has_triplets
        ),
        quality=QualityWarnings(settings),
        text_indices=array("i", range(len(ids))),
    )
    for number, text in enumerate(run.screened.with_votes()):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, len(ids)))
        pairs = label(text.candidates, text.votes, settings.ensemble, judges)
        collected.add(text, pairs)
    show(Progress("making pairs", len(ids), len(ids), ended=True))
    return collected


def _splits(run: StoredRun, collected: _Collected) -> Mapping[str, str]:
    """The split of each text, by its id."""
    settings = run.record.settings
    by_id = sorted(run.texts, key=lambda text: text.text_id)
    splits = split_texts(
        collected.ids,
        collected.rows.sentences(by_id),
        np.array(collected.text_indices),
        settings.split,
        settings.seed,
    )
    return dict(zip(collected.ids, splits, strict=True))


def _dropped(run: StoredRun, collected: _Collected) -> dict[str, int]:
    """Unused rows, dropped proposals and unanswered questions, by reason."""
    counts = Counter(collected.dropped)
    for reason, count in run.record.dropped_texts.items():
        counts[f"text_{reason}"] = count
    task = GenerationTask(run.record)
    proposers = run.record.settings.proposers
    questions = len(run.texts) * sum(map(task.questions_per_text, proposers))
    failures = run.store.failures()
    rejected = sum(f.final and task.is_of_run(f.key) for f in failures)
    counts["answer_rejected"] = rejected
    counts["not_answered"] = questions - collected.answers - rejected
    return {reason: count for reason, count in sorted(counts.items()) if count}
