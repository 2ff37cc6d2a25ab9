"""Make the dataset from stored answers, without a call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from llm_labeler.dataset.dataset_rows import DatasetRows, write
from llm_labeler.judging.ensemble import Judges, label
from llm_labeler.records import LabelledPair
from llm_labeler.runs.label_folder import CANDIDATES_FILE
from llm_labeler.runs.questions_and_votes import (
    GenerationTask,
    ScreenedTexts,
    TextCandidates,
)
from llm_labeler.runs.run_report import QualityWarnings
from llm_labeler.runs.run_result import AskSummary, Labelled, Notes
from llm_labeler.settings import TextSplitSettings
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.system.seeded import keyed_unit
from pairkit.dataset.making.group_splits import draw_splits, text_groups
from pairkit.similarity.groups import Indices, connected, singletons

_REPORT_EVERY = 256  # texts

# The unit interval of draws is cut in this order.
_DRAWN = ("test", "validation", "train")
_TRAIN = _DRAWN.index("train")
# Texts in a group outside train: not a share, which would change as the input grows.
_MAX_HELD_OUT = 10
_MIN_GROUPS = 20  # with as many groups, no wanted split stays empty


def assemble(
    screened: ScreenedTexts,
    work: Path,
    out: Path,
    asked: AskSummary,
    notes: Notes,
    *,
    started: float,
    show: Listener,
) -> Labelled:
    """Parse, filter, label and split the stored answers; write the dataset and WORK/candidates.parquet."""
    settings = screened.record.settings
    # Before the pairs are labelled, as `weighted` needs all votes.
    judges = screened.judges()
    collected = _collect(screened, judges, show)
    collected.rows.write_candidates(work / CANDIDATES_FILE)
    dropped = _dropped(screened, collected)
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
        _splits(screened, collected),
        graded=settings.ensemble.rule.is_graded,
        statistics=statistics,
        run=screened.record.run_json(),
    )
    for warning in warnings:
        notes.add(f"warning: {warning}")
    return Labelled(
        out=out,
        work=work,
        statistics=statistics,
        judges=judges,
        asked=asked,
        dropped={**dropped, **collected.rows.dropped},
        spent_in_all=screened.store.spent(),
        seconds=time.monotonic() - started,
        messages=tuple(notes),
    )


@dataclass(slots=True)
class _Collected:
    """The pairs of a run, and the counts of what was dropped."""

    ids: list[str]  # of the texts, sorted
    rows: DatasetRows
    quality: QualityWarnings
    dropped: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    proposals: int = 0

    def add(self, text: TextCandidates, pairs: Sequence[LabelledPair]) -> None:
        """Add the pairs of one text."""
        self.rows.add(text.text, pairs)
        self.quality.add(text)
        self.answers += text.answers.total()
        self.proposals += len(text.proposals)
        reasons = (proposal.reason for proposal in text.proposals)
        self.dropped.update(reason for reason in reasons if reason is not None)
        self.dropped["not_judged"] += text.unjudged


def _collect(
    screened: ScreenedTexts, judges: Judges | None, show: Listener
) -> _Collected:
    settings = screened.record.settings
    ids = sorted(screened.by_id)
    has_triplets = settings.labelling.makes_triplets
    collected = _Collected(
        ids=ids,
        rows=DatasetRows(
            settings.ensemble.aggregation, settings.seed, triplets=has_triplets
        ),
        quality=QualityWarnings(settings),
    )
    for number, text in enumerate(screened.with_votes()):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, len(ids)))
        pairs = label(text.candidates, text.votes, settings.ensemble, judges)
        collected.add(text, pairs)
    show(Progress("making pairs", len(ids), len(ids), ended=True))
    return collected


def _splits(screened: ScreenedTexts, collected: _Collected) -> Mapping[str, str]:
    """The split of each text, by its id."""
    settings = screened.record.settings
    ids = collected.ids
    texts = [screened.by_id[text_id] for text_id in ids]
    sentences, text_indices = collected.rows.sentences(texts)
    splits = split_texts(ids, sentences, text_indices, settings.split, settings.seed)
    return dict(zip(ids, splits, strict=True))


def split_texts(
    ids: Sequence[str],
    sentences: pl.Series,
    text_indices: Indices,
    settings: TextSplitSettings,
    seed: int,
) -> list[str]:
    """The split of every text; `text_indices` has the text that each sentence belongs to.

    Texts that share a sentence (as text or as candidate), or have near-identical ones, form a group. A group
    is in one split, so no sentence is in two splits.

    The split of a group follows from its hash. Shares are therefore met only on average (5 % of 2,000 texts
    are 100 ± 10), but a text keeps its split when others are added: training data of one version never
    becomes test data of the next. Groups of more than ten texts, or of more texts than a share, are in train.
    Small inputs have two exceptions: with 20 or more groups, each wanted split gets at least one, and train
    is never empty.
    """
    first_sentence = text_groups(sentences)
    groups = connected(singletons(len(ids)), text_indices, text_indices[first_sentence])
    names = np.unique(groups)
    sizes = np.bincount(groups)[names]
    draws = np.array([keyed_unit(seed, "split", ids[name]) for name in names.tolist()])
    splits = np.full(len(ids), _TRAIN, np.int8)
    splits[names] = _assign_splits(sizes, draws, settings)
    return [_DRAWN[split] for split in splits[groups].tolist()]


def _assign_splits(
    sizes: npt.NDArray[np.int64],
    draws: npt.NDArray[np.float64],
    settings: TextSplitSettings,
) -> Indices:
    """The split of every group from the number of its texts and its random draw; all (group,)."""
    total = int(sizes.sum())
    held_out = (settings.test, settings.validation)
    limits = [min(_MAX_HELD_OUT, max(1, round(share * total))) for share in held_out]
    max_sizes = np.array([*limits, total])
    splits = draw_splits(draws, (*held_out, 1 - sum(held_out)))
    splits[sizes > max_sizes[splits]] = _TRAIN

    # Exceptions for small inputs.
    if len(sizes) and not (splits == _TRAIN).any():
        by_size = np.lexsort((draws, -sizes))
        splits[by_size[0]] = _TRAIN
    if len(sizes) < _MIN_GROUPS:
        return splits
    for split, share in enumerate(held_out):
        if share > 0 and not (splits == split).any():
            most_frequent = np.bincount(splits).argmax()
            groups = np.flatnonzero(splits == most_frequent)
            excess = np.maximum(sizes[groups], max_sizes[split])
            by_excess = np.lexsort((draws[groups], excess))
            splits[groups[by_excess[0]]] = split
    return splits


def _dropped(screened: ScreenedTexts, collected: _Collected) -> dict[str, int]:
    """Unused rows, dropped proposals and unanswered questions, by reason."""
    counts = Counter(collected.dropped)
    for reason, count in screened.record.dropped_texts.items():
        counts[f"text_{reason}"] = count
    task = GenerationTask(screened.record)
    proposers = screened.record.settings.proposers
    questions = len(collected.ids) * sum(map(task.questions_per_text, proposers))
    failures = screened.store.failures()
    rejected = sum(f.final and task.is_of_run(f.key) for f in failures)
    counts["answer_rejected"] = rejected
    counts["not_answered"] = questions - collected.answers - rejected
    return {reason: count for reason, count in sorted(counts.items()) if count}
