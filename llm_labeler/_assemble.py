"""From stored answers to the dataset and the table of candidates; asks nobody, and never needs to."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llm_labeler._dataset import DatasetRows, write
from llm_labeler._doubts import Doubts
from llm_labeler._ensemble import Judges, StrategyFunction, label, own_strategy
from llm_labeler._gathered import judged, judges_of
from llm_labeler._kinds import TASKS, strategy_of
from llm_labeler._records import Text
from llm_labeler._split import split_texts
from llm_labeler._store import Store
from llm_labeler._tasks import task_of
from llm_labeler._workplace import CANDIDATES_FILE, RunRecord
from pairkit.progress import Listener, Progress

_TOLD_EVERY = 256  # texts


@dataclass(frozen=True, slots=True)
class Assembled:
    """A dataset that was written, and how it came about."""

    statistics: dict[str, Any]
    judges: Judges | None
    dropped: Mapping[str, int]
    warnings: tuple[str, ...]  # what people should know before they use it


def assemble(
    store: Store,
    record: RunRecord,
    texts: tuple[Text, ...],
    out: Path,
    work: Path,
    *,
    strategy: StrategyFunction | None = None,
    show: Listener = lambda _: None,
) -> Assembled:
    """Parse, screen, label and split what is stored; write the dataset, and WORK/candidates.parquet.

    Args:
        store: The answers.
        record: The run.
        texts: Its sentences.
        out: The dataset's folder.
        work: The working folder.
        strategy: The function that decides, where a person gave one.
        show: Told how it goes on.

    Raises:
        DataError: no pair is left; says what became of the proposals.
        ConfigError: a folder can't be written.
    """
    settings = record.settings
    by_id = {text.text_id: text for text in texts}
    judges = judges_of(store, record, by_id)  # first: `weighted` goes by all votes
    triplets = TASKS[settings.task].triplets
    rows = DatasetRows(settings.ensemble.strategy, settings.seed, triplets=triplets)
    ids = sorted(by_id)
    owners = array("i", range(len(ids)))  # of the texts, and of all candidates that may become rows
    dropped: Counter[str] = Counter()
    doubts = Doubts()
    answers = unjudged = proposals = 0
    for number, about in enumerate(judged(store, record, by_id)):
        if not number % _TOLD_EVERY:
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
    told = {
        **{f"text_{reason}": count for reason, count in record.dropped_texts.items()},
        **dropped,
        "answer_rejected": rejected,
        "not_answered": wanted - answers - rejected,
        "not_judged": unjudged,
    }
    dropped_before = {reason: count for reason, count in sorted(told.items()) if count}
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


def _rejected(store: Store, record: RunRecord) -> int:
    """Questions that a server turned down for good."""
    task = task_of(record)
    return sum(failure.final and task.is_of_run(failure.key) for failure in store.failures())
