"""A review: begun once, continued as often as one likes."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.judgements import ENDING, ReviewJudgement, ReviewStore
from pairkit.dataset.records import PairDataset
from pairkit.reviews.report import ReviewReport, make_review_report
from pairkit.reviews.sample import Wanted, dataset_digest, draw_sample, sample_size
from pairkit.reviews.server import ReviewServer
from pairkit.system.folders import beside

PORT = 8750
_LONGEST_NAME = 60


class Review:
    """People's work on a dataset, in a file.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def serve(self, reviewers: Sequence[str] | None = None, *, port: int | None = None) -> ReviewServer:
        """Start the page's server at 127.0.0.1, and return it running; use it as a context manager.

        Args:
            reviewers: Who judges; each gets a link of their own, which stays the same. By default whoever has
                one, else the name of the login.
            port: The port; by default 8750, or any free one if that is taken.

        Raises:
            ConfigError: The port is taken, or the extra `review` is not installed.
        """
        store = ReviewStore(self.path)
        try:
            known = [person.name for person in store.people()]
            people = store.invite(_names(reviewers) if reviewers else known or [_login()])
            if port is None:
                with suppress(ConfigError):
                    return ReviewServer(store, people, PORT)
            return ReviewServer(store, people, port or 0)
        except BaseException:
            store.close()
            raise

    def judgements(self) -> pl.DataFrame:
        """All that was said and not taken back, a row each, in the order in which it was said."""
        with ReviewStore(self.path) as store:
            rows = store.judgements()
        return pl.DataFrame(rows, schema=[*ReviewJudgement._fields], orient="row", infer_schema_length=None)

    def report(self) -> ReviewReport:
        """How right the labels are, and how far people agree.

        Raises:
            DataError: Nothing was judged yet.
        """
        with ReviewStore(self.path) as store:
            return make_review_report(store)

    def __repr__(self) -> str:
        with ReviewStore(self.path) as store:
            pairs, said, people = len(store.pairs), len(store.judgements()), len(store.people())
        return f"Review({str(self.path)!r}: {pairs:,} pairs, {said:,} judgements, {people:,} people)"


def begin(dataset: PairDataset, place: Path | None, wanted: Wanted) -> Review:
    """See `pairkit.review`."""
    path = place or review_beside(dataset.source)
    with ReviewStore(path, create=True) as store:
        other = _difference(store, dataset, wanted) if store.is_begun else None
        if not store.is_begun or (other and not store.judgements()):
            sample = draw_sample(dataset, wanted)
            store.begin(sample.settings, sample.strata, sample.pairs)
        elif other:
            raise other
    return Review(path)


def review_beside(source: str) -> Path:
    """Where a review goes that is given no place: `DATASET.review`, and right here for one of the Hub."""
    return beside(source, ENDING.removeprefix("."))


def _difference(store: ReviewStore, dataset: PairDataset, wanted: Wanted) -> ConfigError | DataError | None:
    """In what a review is not the one that is asked for; what is not asked for differs in nothing."""
    begun, remedy = store.settings, "give another file (--store, store=)"
    if begun.digest != dataset_digest(dataset):
        about = f"a review of other pairs than {one_line(dataset.source)} has; {remedy}"
        return DataError(about, path=store.path)
    have: dict[str, object] = {
        "strata": begun.strata,
        "seed": begun.seed,
        "each": begun.each,
        "grades": begun.asked == "grades",
        "question": begun.question,
    }
    asked = {name: getattr(wanted, name) for name in have}
    if wanted.n or wanted.share:
        have["n"] = len(store.pairs)
        asked["n"] = min(sample_size(wanted, begun.pairs), begun.pairs)
    for name, value in have.items():
        if asked[name] is not None and asked[name] != value:
            told = f"{name} = {one_line(str(value))}, not {one_line(str(asked[name]))}"
            return ConfigError(f"{store.path}: was begun with {told}; leave {name} out, or {remedy}")
    return None


def _names(given: Sequence[str]) -> list[str]:
    names = [one_line(name.strip(), None) for name in given]
    if bad := [name for name in names if not 0 < len(name) <= _LONGEST_NAME]:
        raise ConfigError(f"reviewer = {one_line(bad[0])!r}: expected a name of 1 to {_LONGEST_NAME} letters")
    return list(dict.fromkeys(names))


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody of that number
        return "reviewer"
