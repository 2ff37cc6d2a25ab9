"""Read, check, describe, show, export and review datasets.

The functions import what they need, so that `--help` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.api import options
from pairkit.base.cli.options import OUTPUT, Option, Request, parameter, takes
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import argument, between_commas, load_settings
from pairkit.dataset.labels import label_rules

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.checking.audit import AuditReport
    from pairkit.dataset.checking.show import ShownPair
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source
    from pairkit.dataset.records import PairDataset
    from pairkit.reports.dataset_report import Report
    from pairkit.reviews.review import Review

_SAMPLE = "Sample (of a new review)"


@options()
def read(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    split: str | None = None,
) -> PairDataset:
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
    from pairkit.dataset.reading.reader import read_pairs

    rules = label_rules(labels, label_range, bad_rows)
    return read_pairs(source, columns, rules, split=split)


@options(out=Option(short="-o", metavar="FILE", panel=OUTPUT, main=True))
def audit(
    source: Source,
    out: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    fresh: bool = False,
) -> AuditReport:
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
    from pairkit.dataset.reading.reader import collect_pairs
    from pairkit.dataset.table_files import TableFile, save_table

    file = argument("out", out, TableFile | None)
    rules = label_rules(labels, label_range, bad_rows)
    skipping = replace(rules, bad_rows="skip")
    pairs = collect_pairs(source, columns, skipping, placed=True)
    result = audit_pairs(pairs, skips_bad_rows=rules.bad_rows == "skip")
    if not result.bad_rows and not any(split.pairs for split in result.splits.values()):
        raise DataError("has no rows; give a dataset with pairs", path=result.source)
    if file is not None:
        save_table(file, result.again, fresh=fresh)
    return result


@options(out=Option(short="-o", metavar="FILE", panel=OUTPUT, main=True))
def report(
    source: Source,
    out: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    seed: int = 42,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Report:
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
    from pairkit.dataset.reading.reader import read_pairs
    from pairkit.reports.dataset_report import make_report

    page = argument("out", out, Path | None)
    seed = argument("seed", seed, int)
    rules = label_rules(labels, label_range, bad_rows)
    pairs = read_pairs(source, columns, rules)
    return make_report(pairs, page, seed=seed, fresh=fresh, progress=progress)


@options(
    split=Option(metavar="NAME", main=True),
    row=Option(metavar="N", main=True),
    label=Option(metavar="N", main=True),
)
def show(
    source: Source,
    *,
    split: str | None = None,
    row: int = 0,
    label: int | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
) -> ShownPair:
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
    from pairkit.dataset.reading.reader import read_pairs

    split = argument("split", split, str | None)
    row = argument("row", row, int)
    label = argument("label", label, float | None)
    rules = label_rules(labels, label_range, bad_rows)
    pairs = read_pairs(source, columns, rules)
    return pick_pair(pairs, split, row, label)


@options(
    out=Option(short="-o", metavar="DIR", panel=OUTPUT, main=True),
    format=Option(metavar="NAME", panel=OUTPUT, main=True),
    raw=Option(panel=OUTPUT),
)
def export(
    source: Source,
    out: str | Path,
    *,
    format: str = "jsonl",  # noqa: A002 - as the flag
    raw: bool = False,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    fresh: bool = False,
) -> list[Path]:
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
    from pairkit.dataset.reading.reader import read_pairs

    folder = argument("out", out, Path)
    file_format = argument("format", format, FileFormat)
    rules = label_rules(labels, label_range, bad_rows)
    pairs = read_pairs(source, columns, rules)
    return export_pairs(pairs, folder, file_format, raw=raw, fresh=fresh)


class ReviewRequest(
    Request, shared=options, settings="pairkit.reviews.review_sample:ReviewOptions"
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
    strata: Sequence[str] | None = parameter(
        default=None,
        setting="strata",
        metavar="A,B,…",
        panel=_SAMPLE,
        read=between_commas,
    )
    each: int | None = parameter(
        default=None, setting="each", metavar="N", panel=_SAMPLE
    )
    grades: bool | None = parameter(default=None, setting="grades", panel=_SAMPLE)
    question: str | None = parameter(
        default=None, setting="question", metavar="TEXT", panel=_SAMPLE
    )
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, Meaning] | str | None = None
    label_range: tuple[float, float] | str | None = None
    bad_rows: str = "error"


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
    from pairkit.dataset.reading.reader import read_pairs
    from pairkit.reviews.review import begin
    from pairkit.reviews.review_sample import ReviewOptions

    store = argument("store", request.store, Path | None)
    review_options = load_settings(ReviewOptions, request.flags())
    rules = label_rules(request.labels, request.label_range, request.bad_rows)
    pairs = read_pairs(request.source, request.columns, rules)
    if store is None and not isinstance(request.source, str | Path):
        raise ConfigError(
            "store = None: pairs in memory have no default file; give a file"
        )
    return begin(pairs, store, review_options)
