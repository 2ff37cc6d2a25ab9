"""From stored answers to the dataset and the table of candidates; asks nobody, and never needs to."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from llm_labeler._dataset import DatasetRows, write
from llm_labeler._doubts import Doubts
from llm_labeler._ensemble import Judges, StrategyFunction, label, own_strategy
from llm_labeler._gathered import judged, judges_of
from llm_labeler._kinds import TASKS, strategy_of
from llm_labeler._records import Pair, Text
from llm_labeler._split import split_texts
from llm_labeler._store import Store
from llm_labeler._tasks import task_of
from llm_labeler._workplace import CANDIDATES_FILE, RunRecord
from pairkit.parquet import write_parquet
from pairkit.progress import Listener, Progress

_VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
_OF_TEXTS = {"text_id": pl.String, "text": pl.String}
_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "candidate": pl.String,
    "polarity": pl.String,  # as proposed
    "llms": pl.List(pl.String),
    "votes": _VOTES,
    "label": pl.Float64,  # what the run's strategy made of it
    "reason": pl.String,  # why it is no pair; null: it is one
}
_CHUNK = 20_000
_TOLD_EVERY = 256  # texts


@dataclass(frozen=True, slots=True)
class Assembled:
    """A dataset that was written, and how it came about."""

    statistics: dict[str, Any]
    judges: Judges | None
    dropped: Mapping[str, int]
    warnings: tuple[str, ...]  # what people should know before they use it


@dataclass(slots=True)
class _Candidates:
    """The table of candidates, in frames as it grows; of triplets with what each negative changes."""

    told: bool = False
    count: int = 0
    texts: list[Text] = field(default_factory=list)  # of the rows, once each
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)

    def add(self, text: Text, pairs: list[Pair]) -> None:
        place = len(self.texts)
        self.texts.append(text)
        for pair in pairs:
            candidate = pair.candidate
            votes = [{"judge": vote.judge, "vote": vote.vote} for vote in pair.votes]
            self.rows.append(
                (
                    place,
                    candidate.candidate,
                    candidate.polarity,
                    list(candidate.llms),
                    votes,
                    pair.label,
                    pair.reason,
                    *((candidate.change,) if self.told else ()),
                )
            )
        self.count += len(pairs)
        if len(self.rows) >= _CHUNK:
            self._pack()

    def write(self, path: Path) -> None:
        """Write the table and forget it."""
        self._pack()
        write_parquet(path, pl.concat(self.frames), private=True)
        self.frames = []

    def _pack(self) -> None:
        """The rows as a frame, in which those of a text share what it says."""
        columns = {"place": pl.UInt32, **_COLUMNS, **({"change": pl.String} if self.told else {})}
        rows = pl.DataFrame(self.rows, schema=columns, orient="row")
        texts = pl.DataFrame(
            [[text.text_id for text in self.texts], [text.text for text in self.texts]], schema=_OF_TEXTS
        )
        self.frames.append(texts[rows["place"]].hstack(rows.drop("place")))
        self.texts, self.rows = [], []


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
    candidates = _Candidates(told=triplets)
    ids = sorted(by_id)
    sentences, owners = [by_id[text_id].text for text_id in ids], array("i", range(len(ids)))
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
        candidates.add(about.text, pairs)
        emitted = [pair.candidate.candidate for pair in pairs if pair.reason is None]
        sentences += emitted
        owners.extend([bisect_left(ids, about.text.text_id)] * len(emitted))
        dropped.update(item.reason for item in about.proposals if item.reason is not None)
        answers, unjudged = answers + about.answers.total(), unjudged + about.unjudged
        proposals += len(about.proposals)
    show(Progress("making pairs", len(texts), len(texts), ended=True))
    candidates.write(work / CANDIDATES_FILE)
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
            "candidates": candidates.count,
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
