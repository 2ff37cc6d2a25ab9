"""Make the dataset from stored answers, without a call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from llm_labeler.dataset.dataset_rows import DatasetRows, write
from llm_labeler.judging.ensemble import Judges, label
from llm_labeler.runs.label_folder import CANDIDATES_FILE
from llm_labeler.runs.questions_and_votes import GenerationTask, ScreenedTexts
from llm_labeler.runs.run_report import Yields
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
    rows, yields, unjudged = _label(screened, judges, show)
    rows.write_candidates(work / CANDIDATES_FILE)
    dropped = _dropped(screened, yields, unjudged)
    warnings = yields.warnings()
    statistics = {
        "texts": len(screened.by_id),
        "answers": yields.answers,
        "proposals": sum(counts.proposals for counts in yields.by_llm.values()),
        "candidates": rows.candidate_count,
        "dropped": dropped,
        "warnings": [*warnings],
    }
    if judges:
        statistics["judges"] = judges.to_dict()
    statistics = write(
        out,
        rows,
        _splits(screened, rows),
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
        dropped={**dropped, **rows.dropped},
        spent_in_all=screened.store.spent(),
        seconds=time.monotonic() - started,
        messages=tuple(notes),
    )


def _label(
    screened: ScreenedTexts, judges: Judges | None, show: Listener
) -> tuple[DatasetRows, Yields, int]:
    """The labelled candidates, the counts of each LLM, and the number of unanswered questions to judges."""
    settings = screened.record.settings
    total = len(screened.by_id)
    rows = DatasetRows(
        settings.ensemble.aggregation,
        settings.seed,
        only_triplets=settings.labelling.makes_triplets,
    )
    yields = Yields(settings)
    unjudged = 0
    for number, text in enumerate(screened.with_votes()):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, total))
        rows.add(
            text.text, label(text.candidates, text.votes, settings.ensemble, judges)
        )
        yields.add(text)
        unjudged += text.unjudged
    show(Progress("making pairs", total, total, ended=True))
    return rows, yields, unjudged


def _splits(screened: ScreenedTexts, rows: DatasetRows) -> Mapping[str, str]:
    """The split of each text, by its id."""
    settings = screened.record.settings
    ids = sorted(screened.by_id)
    sentences, text_indices = rows.sentences([screened.by_id[id_] for id_ in ids])
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


def _dropped(screened: ScreenedTexts, yields: Yields, unjudged: int) -> dict[str, int]:
    """Unused rows, dropped proposals and unanswered questions, by reason."""
    counts = Counter({"not_judged": unjudged})
    for each in yields.by_llm.values():
        counts.update(each.dropped)
    for reason, count in screened.record.dropped_texts.items():
        counts[f"text_{reason}"] = count
    task = GenerationTask(screened.record)
    proposers = screened.record.settings.proposers
    questions = len(screened.by_id) * sum(map(task.questions_per_text, proposers))
    failures = screened.store.failures()
    rejected = sum(f.final and task.is_of_run(f.key) for f in failures)
    counts["answer_rejected"] = rejected
    counts["not_answered"] = questions - yields.answers - rejected
    return {reason: count for reason, count in sorted(counts.items()) if count}
