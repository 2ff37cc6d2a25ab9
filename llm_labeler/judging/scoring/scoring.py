"""Compare what LLMs and strategies say of candidates with what people say of the same pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import polars as pl

from llm_labeler.judging.ensemble import Judges, fit_judges, label
from llm_labeler.judging.scoring.candidates import Matched, all_votes, read_candidates
from llm_labeler.judging.scoring.gold import Finding, Gold, read_gold
from llm_labeler.judging.scoring.measures import Counts, spearman
from llm_labeler.judging.scoring.report import ScoreReport, ScoreRow
from llm_labeler.records import POLARITIES, Polarity
from llm_labeler.settings.kinds import STRATEGIES
from llm_labeler.settings.labelling import EnsembleSettings
from pairkit.reviews.agreement import cohen_kappa, wilson


class _Labelled(NamedTuple):
    """One candidate with people's label and a prediction."""

    same: bool  # people
    grade: float
    polarity: Polarity | None  # predicted; None: turned down
    label: float


def score(
    gold: pl.DataFrame,
    candidates: pl.DataFrame,
    settings: EnsembleSettings,
    threshold: float | None = None,
) -> ScoreReport:
    """Score every LLM and every strategy, by polarity, on the candidates that a gold pair matches.

    A gold pair matches where its `text1` is a candidate's source and its `text2` the candidate, but for
    letter case, white space and compatible Unicode forms. Judges are estimated from all votes of the table.

    Args:
        gold: `text1`, `text2`, `label`, see `read_gold`.
        candidates: The table described in `llm_labeler.judging.scoring.candidates`.
        settings: What the strategies need; its own `strategy` plays no part.
        threshold: The least gold label that counts as the same; None: half of the labels' range.

    Raises:
        DataError: gold or candidates lack a column, or hold what can't be a label or a vote.
    """
    people = read_gold(gold, threshold)
    table = read_candidates(candidates)
    judges = fit_judges(all_votes(table), settings) if table["votes"].list.len().sum() else None
    both = people.pairs.join(table, on="key", maintain_order="left_right")
    matched = [Matched.of(row) for row in both.iter_rows(named=True)]
    need_votes = [name for name, strategy in STRATEGIES.items() if strategy.is_judged]
    skipped: dict[str, str] = {} if judges else dict.fromkeys(need_votes, "no candidate was judged")
    strategies = [name for name in STRATEGIES if name not in skipped]
    rows = [
        *_rows("llm", _llms(matched), people.graded, lambda name: _as_proposed(matched, name)),
        *_rows(
            "strategy", strategies, people.graded, lambda name: _by_strategy(matched, name, settings, judges)
        ),
    ]
    return _report(people, both, rows, skipped, judges)


def _report(
    people: Gold,
    both: pl.DataFrame,
    rows: Sequence[ScoreRow],
    skipped: Mapping[str, str],
    judges: Judges | None,
) -> ScoreReport:
    missing = people.pairs.join(both, on="key", how="anti", maintain_order="left")
    return ScoreReport(
        rows=tuple(rows),
        gold=len(people.pairs),
        found=len(people.pairs) - len(missing),
        not_found=Finding.of(missing),
        contradictory=people.contradictory,
        repeated=people.repeated,
        graded=people.graded,
        threshold=people.threshold,
        skipped=skipped,
        judges=judges,
    )


def _rows(
    by: Literal["llm", "strategy"],
    names: Sequence[str],
    graded: bool,
    predict: Callable[[str], list[_Labelled]],
) -> Iterator[ScoreRow]:
    for name in names:
        labelled = predict(name)
        for polarity in POLARITIES:
            yield _row(by, name, polarity, labelled, graded)


def _row(
    by: Literal["llm", "strategy"], name: str, polarity: Polarity, labelled: list[_Labelled], graded: bool
) -> ScoreRow:
    wanted = polarity == "positive"
    predicted = [one.same == wanted for one in labelled if one.polarity == polarity]
    right = sum(predicted)
    counts = Counts(right, len(predicted) - right, sum(one.same == wanted for one in labelled) - right)
    kept = [one for one in labelled if one.polarity]
    return ScoreRow(
        by=by,
        name=name,
        polarity=polarity,
        n=len(predicted),
        precision=counts.precision,
        interval=wilson(right, len(predicted)),
        recall=counts.recall,
        f1=counts.f1,
        kept=len(kept),
        candidates=len(labelled),
        kappa=cohen_kappa([one.polarity == "positive" for one in kept], [one.same for one in kept]).value,
        spearman=spearman([one.label for one in kept], [one.grade for one in kept]) if graded else None,
    )


def _as_proposed(matched: list[Matched], llm: str) -> list[_Labelled]:
    return [
        _Labelled(one.same, one.grade, one.candidate.polarity, float(one.candidate.polarity == "positive"))
        for one in matched
        if llm in one.candidate.llms
    ]


def _by_strategy(
    matched: list[Matched], name: str, settings: EnsembleSettings, judges: Judges | None
) -> list[_Labelled]:
    votes = {one.candidate.candidate_id: one.votes for one in matched}
    chosen = settings.model_copy(update={"strategy": name})
    pairs = label([one.candidate for one in matched], votes, chosen, judges)
    return [
        _Labelled(one.same, one.grade, None if pair.reason else pair.polarity, pair.label)
        for one, pair in zip(matched, pairs, strict=True)
    ]


def _llms(matched: list[Matched]) -> list[str]:
    return sorted({llm for one in matched for llm in one.candidate.llms})
