"""A dataset without what people rejected, or with their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from pairkit.app.errors import DataError
from pairkit.dataset.audit import audit_pairs
from pairkit.dataset.divide import DROPPED
from pairkit.dataset.in_memory import Source
from pairkit.dataset.judgements import LABELS, TOP_GRADE, PairDecision, ReviewSettings, ReviewStore, decide
from pairkit.dataset.made import MadeDataset, build_result, check_out, run_record
from pairkit.dataset.make import write_result
from pairkit.dataset.reader import frames_of
from pairkit.dataset.records import PairDataset
from pairkit.reviews.report import HEADING, is_right, make_review_report
from pairkit.reviews.sample import pair_id

REJECTED, UNSURE = "rejected_by_people", "unsure_to_people"
_APPLIED = """
A dataset that people inspected in part (`pairs review`), as `pairs apply` made it: {what}. `reviewed` tells
which pairs people judged, `reviewers` how many of them, `decision` what they said.
"""
_BEFORE = "Of the dataset before {what}:\n\n"
_WORDS = {value: word for word, value in LABELS.items()}


def apply_review(
    dataset: PairDataset,
    source: Source,
    path: Path,
    out: Path | None,
    *,
    relabel: bool,
    drop_unsure: bool,
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.apply`."""
    with ReviewStore(path) as store:
        settings, decisions, report = store.settings, decide(store.judgements()), make_review_report(store)
    told = {"relabel": relabel, "drop_unsure": drop_unsure, "review_sha256": _digest(decisions)}
    run = run_record("apply", {"pairs": dataset}, told)
    if out is not None:
        check_out(out, run, {"pairs": source}, fresh=fresh)
    rows, relabelled = _decided(dataset, decisions, settings, relabel=relabel, drop_unsure=drop_unsure)
    if not rows["reviewed"].any():
        raise DataError(f"none of its pairs is in {dataset.source}; give the dataset it is about", path=path)
    made = build_result(rows, dataset.label_kind, str(out or dataset.source), [dataset.labels])
    audit_pairs(frames_of(made.pairs)).check()
    made.statistics["reviewed_pairs"] = int(made.pairs.rows["reviewed"].sum())
    made.statistics["relabelled_pairs"] = relabelled
    if out is None:
        return made
    what = "pairs got people's labels" if relabel else "pairs that people rejected were left out"
    section = (HEADING, _BEFORE.format(what=what) + report.section())
    return write_result(
        made, out, run, {"pairs": source}, _APPLIED.format(what=what), fresh=fresh, sections=[section]
    )


def _decided(
    dataset: PairDataset,
    decisions: Mapping[str, PairDecision],
    settings: ReviewSettings,
    *,
    relabel: bool,
    drop_unsure: bool,
) -> tuple[pl.DataFrame, int]:
    """Every row with what people said of its pair and why it is dropped; and how many labels changed."""
    rows = dataset.rows
    found = [decisions.get(pair_id(one, other)) for one, other in rows.select("text1", "text2").iter_rows()]
    before = rows["label"].cast(pl.Float64).to_list()
    labels = [*before]
    reasons: list[str | None] = [None] * rows.height
    for row, decision in enumerate(found):
        if decision is None:
            continue
        if decision.value is None:
            reasons[row] = UNSURE if drop_unsure else None
        elif not is_right(labels[row], decision.value, settings):
            if relabel:
                labels[row] = _label(decision.value, settings)
            else:
                reasons[row] = REJECTED
    changed = sum(new != old for new, old in zip(labels, before, strict=True))
    table = rows.with_columns(
        pl.Series("label", labels, pl.Float64).cast(rows["label"].dtype),
        pl.Series("reviewed", [decision is not None for decision in found], pl.Boolean),
        pl.Series("reviewers", [decision and len(decision.people) for decision in found], pl.Int64),
        pl.Series("decision", [decision and _word(decision, settings) for decision in found], pl.String),
        pl.Series(DROPPED, reasons, pl.String),
    )
    return table, changed


def _label(value: float, settings: ReviewSettings) -> float:
    """People's answer on the dataset's own scale."""
    share = value if settings.asked == "labels" else value / TOP_GRADE
    return float(share >= 0.5) if settings.label_kind == "binary" else share * settings.top


def _word(decision: PairDecision, settings: ReviewSettings) -> str:
    if decision.value is None:
        return decision.state
    return _WORDS[decision.value] if settings.asked == "labels" else f"{decision.value:g}"


def _digest(decisions: Mapping[str, PairDecision]) -> str:
    told = "\n".join(
        f"{key} {found.state} {found.value} {len(found.people)}" for key, found in decisions.items()
    )
    return hashlib.sha256(told.encode()).hexdigest()
