"""Begin, continue and apply a review."""

from __future__ import annotations

import getpass
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.folders import differing, path_beside
from pairkit.dataset.checking.audit import audit_pairs
from pairkit.dataset.judgements import (
    ENDING,
    LABELS,
    TOP_GRADE,
    PairDecision,
    ReviewJudgement,
    ReviewSettings,
    ReviewStore,
    decide,
)
from pairkit.dataset.making.made import (
    DROPPED,
    MadeDataset,
    build_result,
    check_out,
    run_record,
    write_result,
)
from pairkit.dataset.reading.in_memory import Source
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import PairDataset
from pairkit.reviews.review_report import (
    HEADING,
    ReviewReport,
    is_right,
    make_review_report,
)
from pairkit.reviews.review_sample import (
    ReviewOptions,
    dataset_digest,
    draw_sample,
    pair_id,
)
from pairkit.reviews.review_server import ReviewServer

PORT = 8750
REJECTED = "rejected_by_people"
_MAX_NAME = 60
_WORDS = {value: word for word, value in LABELS.items()}

_APPLIED = """
Made by `pairs apply-review` from a dataset that people reviewed in part: {what}. `reviewed` marks the
judged pairs, `reviewers` is the number of people, `decision` their answer.
"""
_BEFORE = "About the dataset before {what}:\n\n"
# Columns of reviewed rows, beside `reviewed`.
_JUDGED = {
    "label": pl.Float64,
    "reviewers": pl.Int64,
    "decision": pl.String,
    DROPPED: pl.String,
}


class Review:
    """A review of a dataset, stored in a file.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def serve(
        self, reviewers: Sequence[str] | None = None, *, port: int | None = None
    ) -> ReviewServer:
        """Start the server of the review page at 127.0.0.1; use it as a context manager.

        Args:
            reviewers: Names of the reviewers; each gets a permanent link. Default: all who have a link, or
                else your login's name.
            port: The port. Default: 8750, or a free one if 8750 is taken.

        Raises:
            ConfigError: The port is taken, or the extra `review` is not installed.
        """
        store = ReviewStore(self.path)
        try:
            known = [person.name for person in store.people()]
            people = store.invite(
                _reviewer_names(reviewers) if reviewers else known or [_login()]
            )
            if port is None:
                with suppress(ConfigError):
                    return ReviewServer(store, people, PORT)
            return ReviewServer(store, people, port or 0)
        except BaseException:
            store.close()
            raise

    def judgements(self) -> pl.DataFrame:
        """All judgements that were not undone, one per row, in order."""
        with ReviewStore(self.path) as store:
            rows = store.judgements()
        return pl.DataFrame(
            rows,
            schema=[*ReviewJudgement._fields],
            orient="row",
            infer_schema_length=None,
        )

    def report(self) -> ReviewReport:
        """The accuracy of the labels and the agreement of the reviewers.

        Raises:
            DataError: No pair is judged yet.
        """
        with ReviewStore(self.path) as store:
            return make_review_report(store)

    def __repr__(self) -> str:
        with ReviewStore(self.path) as store:
            pairs = f"{len(store.pairs):,} pairs"
            judgements = f"{len(store.judgements()):,} judgements"
            people = f"{len(store.people()):,} people"
        return f"Review({str(self.path)!r}: {pairs}, {judgements}, {people})"


def begin(dataset: PairDataset, place: Path | None, options: ReviewOptions) -> Review:
    """See `pairkit.review`; a review with other pairs or options is replaced if it has no judgements."""
    path = place or review_beside(dataset.source)
    with ReviewStore(path, create=True) as store:
        if store.is_begun:
            error = _settings_error(store, dataset, options)
            if error is None:
                return Review(path)
            if store.judgements():
                raise error
        store.begin(*draw_sample(dataset, options))
    return Review(path)


def review_beside(source: str) -> Path:
    """The default file of a review: `DATASET.review`, for Hub ids in the current folder."""
    return path_beside(source, ENDING.removeprefix("."))


def _settings_error(
    store: ReviewStore, dataset: PairDataset, options: ReviewOptions
) -> ConfigError | DataError | None:
    """The error if the pairs or an option differ from those of the saved review; None if they don't."""
    saved = store.settings
    remedy = "give another --store"
    if saved.digest != dataset_digest(dataset):
        about = f"is a review of other pairs than those of {one_line(dataset.source)}; {remedy}"
        return DataError(about, path=store.path)
    saved_options = {
        "strata": saved.strata,
        "seed": saved.seed,
        "each": saved.each,
        "grades": saved.asked == "grades",
        "question": saved.question,
        "n": len(store.pairs),
    }
    requested = options.model_dump(exclude_none=True)
    if options.n:
        requested["n"] = min(options.n, saved.pairs)
    saved_options = {name: saved_options[name] for name in requested}
    if differences := differing(saved_options, requested):
        return ConfigError(
            f"{store.path}: was begun with other options: {'; '.join(differences)}; leave them out, or {remedy}"
        )
    return None


def _reviewer_names(reviewers: Sequence[str]) -> list[str]:
    """The distinct names in one line each; raises ConfigError for empty and long names."""
    if isinstance(reviewers, str):  # one name, not a name for each letter
        reviewers = [reviewers]
    names = dict.fromkeys(one_line(name.strip(), None) for name in reviewers)
    for name in names:
        if not 0 < len(name) <= _MAX_NAME:
            raise ConfigError(
                f"reviewer = {one_line(name)!r}: expected a name of 1 to {_MAX_NAME} letters"
            )
    return [*names]


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user id has no name
        return "reviewer"


def apply_review(
    dataset: PairDataset,
    source: Source,
    path: Path,
    out: Path | None,
    *,
    relabel: bool,
    fresh: bool,
) -> MadeDataset:
    """See `pairkit.apply_review`."""
    with ReviewStore(path) as store:
        settings = store.settings
        decisions = decide(store.judgements())
        report = make_review_report(store)
    record = {"relabel": relabel, "review_sha256": _digest(decisions)}
    run = run_record("apply", {"pairs": dataset}, record)
    check_out(out, run, [source], fresh=fresh)
    rows, relabelled = _decided(dataset, decisions, settings, relabel=relabel)
    if not rows["reviewed"].any():
        raise DataError(
            f"has no pair of {dataset.source}; give the reviewed dataset", path=path
        )
    result = build_result(
        rows, dataset.label_kind, str(out or dataset.source), [dataset]
    )
    audit_pairs(read_pairs(result.pairs, placed=True, logged=False)).check()
    result.statistics["reviewed_pairs"] = int(result.pairs.rows["reviewed"].sum())
    result.statistics["relabelled_pairs"] = relabelled
    what = (
        "pairs got people's labels"
        if relabel
        else "pairs that people rejected were left out"
    )
    section = (HEADING, _BEFORE.format(what=what) + report.section())
    return write_result(result, out, run, _APPLIED.format(what=what), [section])


def _decided(
    dataset: PairDataset,
    decisions: Mapping[str, PairDecision],
    settings: ReviewSettings,
    *,
    relabel: bool,
) -> tuple[pl.DataFrame, int]:
    """All rows with their decision and drop reason; and the number of changed labels."""
    rows = dataset.rows
    labels = rows["label"].cast(pl.Float64)
    judged = []
    for label, *texts in rows.select(labels, "text1", "text2").iter_rows():
        decision = decisions.get(pair_id(*texts, ordered=settings.is_search))
        judged.append(_judged(label, decision, settings, relabel=relabel))
    columns = pl.DataFrame(judged, _JUDGED, orient="row")
    table = rows.with_columns(
        columns["label"].cast(rows["label"].dtype),
        columns["reviewers"].is_not_null().alias("reviewed"),
        *columns.drop("label"),
    )
    return table, int((columns["label"] != labels).sum())


def _judged(
    label: float,
    decision: PairDecision | None,
    settings: ReviewSettings,
    *,
    relabel: bool,
) -> tuple[float, int | None, str | None, str | None]:
    """The values of `_JUDGED` for a row."""
    if decision is None:
        return label, None, None, None
    reason = None
    value = decision.value
    if value is not None and not is_right(label, value, settings):
        if relabel:
            label = _label(value, settings)
        else:
            reason = REJECTED
    return label, len(decision.people), _word(decision, settings), reason


def _label(value: float, settings: ReviewSettings) -> float:
    """People's answer on the dataset's scale."""
    share = value if settings.asked == "labels" else value / TOP_GRADE
    return (
        float(share >= 0.5) if settings.label_kind == "binary" else share * settings.top
    )


def _word(decision: PairDecision, settings: ReviewSettings) -> str:
    if decision.value is None:
        return decision.state
    return (
        _WORDS[decision.value] if settings.asked == "labels" else f"{decision.value:g}"
    )


def _digest(decisions: Mapping[str, PairDecision]) -> str:
    text = "\n".join(
        f"{key} {decision.state} {decision.value} {len(decision.people)}"
        for key, decision in decisions.items()
    )
    return hashlib.sha256(text.encode()).hexdigest()
