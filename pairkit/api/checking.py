"""Read, check, describe, show, export and review datasets.

The functions import what they need, so that `--help` is fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.api import ReadRequest, options
from pairkit.base.cli.options import OUTPUT, parameter, takes
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import argument, load_settings

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.checking.audit import AuditReport
    from pairkit.dataset.checking.show import ShownPair
    from pairkit.dataset.reading.in_memory import Source
    from pairkit.dataset.records import PairDataset
    from pairkit.reports.dataset_report import Report
    from pairkit.reviews.review import Review

_SAMPLE = "Sample (of a new review)"


class PairsRequest(ReadRequest, shared=options):
    """The arguments of `read`."""

    source: Source
    _: KW_ONLY
    split: str | None = None


@takes(PairsRequest)
def read(request: PairsRequest) -> PairDataset:
    """Read pairs from a folder, a file, the Hub or memory.

    Args:
        split: Read only this split.

    Returns:
        text1, text2, label and the source's other columns, by split. A triplet becomes one positive row and
        one row for each negative.

    Raises:
        ConfigError: The source does not exist, or a mapping is invalid.
        DataError: The source is not readable, or a column, text or label is missing or not usable.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.read("pairs.tsv")
        PairDataset of pairs.tsv: 8 pairs, labels 0 and 1 (50.0 % are 1); train 8
    """
    return request.pairs_of(request.source, split=request.split)


class AuditRequest(ReadRequest, shared=options):
    """The arguments of `audit`."""

    source: Source
    out: str | Path | None = parameter(
        default=None, short="-o", metavar="FILE", panel=OUTPUT, main=True
    )
    _: KW_ONLY
    fresh: bool = False


@takes(AuditRequest)
def audit(request: AuditRequest) -> AuditReport:
    """Find leaks between splits, contradictory labels, repeats, and rows that lack a text or label.

    Texts are the same if they differ only in case, blanks and punctuation, and near-identical if the Jaccard
    similarity of their word triples is 0.8 or more. Scores contradict if they differ by a fifth of their
    scale or more. The command exits with 3 if splits leak or unusable rows are not skipped.

    Args:
        out: File for all rows of contradictory and repeated pairs (.csv, .tsv, .jsonl or .parquet), with
            kind, group, split, file and row.

    Returns:
        The findings. `leaks` lists what two splits share; `check()` raises an error for it. `again` has all
        rows of contradictory and repeated pairs. Rows that lack a text or label are left out and counted in
        `bad_rows`.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid, or `out` can't be replaced or written.
        DataError: The source is not readable, a text or label is not usable, or there are no rows.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.audit("pairs.tsv").leaks
        []
    """
    from pairkit.dataset.checking.audit import audit_pairs
    from pairkit.dataset.reading.reader import read_pairs
    from pairkit.dataset.table_files import TableFile, save_table

    file = argument("out", request.out, TableFile | None)
    rules = request.rules()
    skipping = replace(rules, bad_rows="skip")
    pairs = read_pairs(
        request.source, request.columns, skipping, placed=True, logged=False
    )
    result = audit_pairs(pairs, skips_bad_rows=rules.bad_rows == "skip")
    if not result.bad_rows and not any(split.pairs for split in result.splits.values()):
        raise DataError("has no rows; give a dataset with pairs", path=result.source)
    if file is not None:
        save_table(file, result.again, fresh=request.fresh)
    return result


class ReportRequest(AuditRequest, shared=options):
    """The arguments of `report`."""

    _: KW_ONLY
    seed: int = 42
    progress: bool | Listener = True


@takes(ReportRequest)
def report(request: ReportRequest) -> Report:
    """Describe a dataset on one page: counts, lengths, word overlap, what was dropped, and sample pairs.

    Args:
        out: The HTML file. Default: DATASET.report.html.

    Returns:
        The counts and the path of the page.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid, or `out` can't be replaced or written.
        DataError: The source is not readable, a text or label is not usable, or there are no rows.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.report("pairs.tsv", "about.html", progress=False)
        >>> result.page.name, result.counts["splits"]["all"]["texts"]
        ('about.html', 12)
    """
    from pairkit.reports.dataset_report import make_report

    page = argument("out", request.out, Path | None)
    seed = argument("seed", request.seed, int)
    pairs = request.pairs_of(request.source)
    return make_report(
        pairs, page, seed=seed, fresh=request.fresh, progress=request.progress
    )


class ShowRequest(ReadRequest, shared=options):
    """The arguments of `show`."""

    source: Source
    _: KW_ONLY
    split: str | None = parameter(default=None, metavar="NAME", main=True)
    row: int = parameter(default=0, metavar="N", main=True)
    label: float | None = parameter(default=None, metavar="X", main=True)


@takes(ShowRequest)
def show(request: ShowRequest) -> ShownPair:
    """Show one pair side by side, with the words that both texts share marked.

    Args:
        split: Split of the pair: train, validation or test. Default: the last one of the dataset.
        row: Number of the pair, counted from 0.
        label: Use only pairs with this label; --row counts among them.

    Returns:
        A pair that is displayed on a terminal and in a notebook.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid, or there is no such split or row.
        DataError: The source is not readable, or a text or label is not usable.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.show("pairs.tsv", row=1, label=0).row["text2"]
        'Please add a dark theme.'
    """
    from pairkit.dataset.checking.show import pick_pair

    split = argument("split", request.split, str | None)
    row = argument("row", request.row, int)
    label = argument("label", request.label, float | None)
    return pick_pair(request.pairs_of(request.source), split, row, label)


class ExportRequest(ReadRequest, shared=options):
    """The arguments of `export`."""

    source: Source
    out: str | Path = parameter(short="-o", metavar="DIR", panel=OUTPUT, main=True)
    _: KW_ONLY
    format: str = parameter(default="jsonl", metavar="NAME", panel=OUTPUT, main=True)
    raw: bool = parameter(default=False, panel=OUTPUT)
    fresh: bool = False


@takes(ExportRequest)
def export(request: ExportRequest) -> list[Path]:
    """Write each split as a file of JSON lines or CSV.

    In CSV, a text that begins with = + - @, a tab or a line end gets an apostrophe before it, because a
    spreadsheet would run the text as a formula; the column `apostrophes_added` lets reading remove it.

    Args:
        out: The folder for the files.
        format: Format of the files: jsonl or csv.
        raw: Write CSV for programs, without the apostrophes.

    Returns:
        The files, in the order of the splits.

    Raises:
        ConfigError: The source does not exist, a setting is invalid, or a file can't be replaced or written.
        DataError: The source is not readable, a text or label is not usable, or a column contains bytes.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> [path.name for path in pairkit.export("pairs.tsv", "plain", format="csv")]
        ['train.csv']
    """
    from pairkit.dataset.making.made import FileFormat, export_pairs

    folder = argument("out", request.out, Path)
    file_format = argument("format", request.format, FileFormat)
    pairs = request.pairs_of(request.source)
    return export_pairs(
        pairs, folder, file_format, raw=request.raw, fresh=request.fresh
    )


class ReviewRequest(
    ReadRequest, shared=options, settings="pairkit.reviews.review_sample:ReviewOptions"
):
    """The arguments of `review`."""

    source: Source
    store: str | Path | None = None
    _: KW_ONLY
    n: int | None = parameter(
        default=None, setting="n", metavar="N", panel=_SAMPLE, main=True
    )
    seed: int | None = parameter(
        default=None, setting="seed", metavar="N", panel=_SAMPLE
    )
    strata: Sequence[str] | str | None = parameter(
        default=None, setting="strata", metavar="A,B,…", panel=_SAMPLE
    )
    each: int | None = parameter(
        default=None, setting="each", metavar="N", panel=_SAMPLE
    )
    grades: bool | None = parameter(default=None, setting="grades", panel=_SAMPLE)
    question: str | None = parameter(
        default=None, setting="question", metavar="TEXT", panel=_SAMPLE
    )


@takes(ReviewRequest)
def review(request: ReviewRequest) -> Review:
    """Let people judge a sample of pairs blindly in a browser, and estimate the accuracy of the labels.

    Each answer is saved at once, and the same call continues a review. `pairs apply-review` and
    `label evaluate` read its file. Options that choose pairs are set when a review begins: later they may be
    left out, but not changed. Results of `aoe sample-pairs --queries` are judged by query: the page shows all
    results of a query in random order, and keys mark those that fit.

    Args:
        store: The review's file. `read` takes it as pairs with people's labels. Default: DATASET.review.
        n: Number of pairs. Default: a tenth of the dataset.
        seed: Random seed for the choice and order of pairs. Default: 42.
        strata: Columns to stratify by, such as label,split. Possible are label, evidence, llm, confidence,
            judges, relation, source and split. Default: the columns of the dataset for which the sample is
            large enough.
        each: Number of people who judge each pair. Default: all.
        grades: Ask for grades from 0 to 5. Default: on if labels are scores.
        question: Question that reviewers answer about each pair.

    Returns:
        The review.

    Raises:
        ConfigError: The source does not exist, or a setting is invalid or differs from an existing review.
        DataError: The source is not readable or usable, or the file is a review of other pairs.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.review("pairs.tsv", "people.review", n=4)
        Review('people.review': 4 pairs, 0 judgements, 0 people)
    """
    from pairkit.reviews.review import begin
    from pairkit.reviews.review_sample import ReviewOptions

    store = argument("store", request.store, Path | None)
    review_options = load_settings(ReviewOptions, request.flags())
    pairs = request.pairs_of(request.source)
    if store is None and not isinstance(request.source, str | Path):
        raise ConfigError(
            "store = None: pairs in memory have no default file; give a file"
        )
    return begin(pairs, store, review_options)
