"""The public functions of `pairkit`, which are also the commands of `pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pairkit.base.cli.options import INPUT, OUTPUT, Option
from pairkit.base.errors import ConfigError
from pairkit.base.settings import argument, between_commas
from pairkit.dataset.labels import label_rules
from pairkit.dataset.parquet import write_parquet
from pairkit.dataset.reading.in_memory import Source
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import PairDataset
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.checking.audit import AuditReport
    from pairkit.dataset.checking.show import ShownPair
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.making.made import MadeDataset
    from pairkit.reports import Report
    from pairkit.reviews import Review

_SAMPLE = "Sample (of a new review)"


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--split-sizes {text}: expected three numbers, such as 0.8,0.1,0.1") from None


options = SHARED.extended(
    source=Option(
        "A folder, a CSV, TSV, JSONL or Parquet file, or a Hub id. A folder is a pair dataset, one of"
        " `Dataset.save_to_disk`, or has files named after splits; a file may be gzipped; a Hub id is"
        " `owner/name` or `owner/name:config`. In Python also a DataFrame, a `datasets.Dataset`, a list of"
        " dicts, or a mapping of splits to any of these.",
        metavar="DATASET",
        positional=True,
    ),
    out=replace(SHARED["out"], text="Folder of the dataset. None writes nothing.", required=True),
    store=Option("File of the review. Default: DATASET.review.", metavar="FILE", panel=INPUT),
    dropped=Option("File for the rows that are left out, as Parquet.", metavar="FILE", panel=OUTPUT),
    cut_negatives=Option(
        "Drop negatives whose texts are in different splits. Use it for datasets whose negatives connect all"
        " texts: only positives then group the texts.",
    ),
    split_sizes=Option(
        "Proportions of train, validation and test.", metavar="A,B,C", main=True, read=_numbers
    ),
)


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
        DataError: The source is not readable, a column or text is missing, or a label is not usable; with
            file and row.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.read("pairs.tsv")
        PairDataset of pairs.tsv: 8 pairs, labels 0 and 1 (50.0 % are 1); train 8
    """
    return read_pairs(source, columns=columns, rules=label_rules(labels, label_range, bad_rows), split=split)


@options()
def audit(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
) -> AuditReport:
    """Find leaks between splits, contradictory labels, repeats, and rows that lack a text or label.

    Texts are near-identical if the Jaccard similarity of their word triples is 0.8 or more. The command exits
    with 3 if splits leak or unusable rows are not skipped.

    Returns:
        The findings. `leaks` lists what two splits share; `check()` raises an error for it. Rows that lack a
        text or label are left out and counted in `bad_rows`.

    Raises:
        ConfigError: The source does not exist, or a mapping is invalid.
        DataError: The source is not readable, a text or label is not usable, or there are no rows.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.audit("pairs.tsv").leaks
        []
    """
    from pairkit.base.errors import DataError
    from pairkit.dataset.checking.audit import audit_pairs
    from pairkit.dataset.reading.reader import read_frames

    columns = argument("columns", columns, dict[str, str] | None)
    rules = label_rules(labels, label_range, bad_rows)
    skips = rules.bad_rows == "skip"
    result = audit_pairs(read_frames(source, columns, rules), skips_bad_rows=skips)
    if not result.bad_rows and not any(split.pairs for split in result.splits.values()):
        raise DataError("has no rows; give a dataset with pairs", path=result.source)
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
        ConfigError: The source does not exist, a mapping is invalid, or `out` is not a report or can't be
            written.
        DataError: The source is not readable, a text or label is not usable, or there are no rows.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.report("pairs.tsv", "about.html", progress=False)
        >>> result.page.name, result.counts["splits"]["all"]["texts"]
        ('about.html', 12)
    """
    from pairkit.reports import make_report

    folder, seed = argument("out", out, Path | None), argument("seed", seed, int)
    pairs = read_pairs(source, columns=columns, rules=label_rules(labels, label_range, bad_rows))
    return make_report(pairs, folder, seed=seed, fresh=fresh, progress=progress)


@options(
    n=Option(metavar="N", panel=_SAMPLE, main=True),
    seed=Option(metavar="N", panel=_SAMPLE),
    strata=Option(metavar="A,B,…", panel=_SAMPLE, read=between_commas),
    each=Option(metavar="N", panel=_SAMPLE),
    grades=Option(panel=_SAMPLE),
    question=Option(metavar="TEXT", panel=_SAMPLE),
)
def review(
    source: Source,
    store: str | Path | None = None,
    *,
    n: int | None = None,
    seed: int | None = None,
    strata: Sequence[str] | None = None,
    each: int | None = None,
    grades: bool | None = None,
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
) -> Review:
    """Let people judge a sample of pairs blindly in a browser, and estimate the accuracy of the labels.

    Each answer is saved at once, and the same call continues a review. `pairs apply-review` and
    `label evaluate` read its file. Options that choose pairs are set when a review begins: later they may be
    left out, but not changed.

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
        ConfigError: The source does not exist, a mapping is invalid; a setting is invalid or differs from the
            review in that file.
        DataError: The source is not readable, a text or label is not usable, or the file is a review of other
            pairs.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> pairkit.review("pairs.tsv", "people.review", n=4)
        Review('people.review': 4 pairs, 0 judgements, 0 people)
    """
    from pairkit.base.settings import load_settings
    from pairkit.reviews.review import begin
    from pairkit.reviews.review_sample import ReviewOptions

    file = argument("store", store, Path | None)
    options = {"n": n, "seed": seed, "strata": strata}
    options |= {"each": each, "grades": grades, "question": question}
    review_options = load_settings(ReviewOptions, flags=options)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    if file is None and not isinstance(source, str | Path):
        raise ConfigError("store = None: pairs in memory have no default file; give a file")
    return begin(pairs, file, review_options)


@options(relabel=Option(main=True))
def apply_review(
    source: Source,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    relabel: bool = False,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    dropped: str | Path | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Make a dataset from a review: without the rejected pairs, or with people's labels.

    The columns `reviewed`, `reviewers` (their number) and `decision` record the review of each row. Rows that
    no one judged are unchanged.

    Args:
        relabel: Keep rejected pairs, with people's labels.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: The source does not exist, a setting is invalid, `out` contains other files, or the
            review does not exist.
        DataError: The source is not readable, a text or label is not usable, or no pair of the dataset is
            judged yet.
        LeakError: Two splits share a text, issue or cluster, as in `audit`.
        RemoteError: The Hub could not be reached.
    """
    from pairkit.reviews.review import apply_review, review_beside

    folder, file = argument("out", out, Path | None), argument("store", store, Path | None)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    path = file or review_beside(pairs.source)
    return _with_dropped(apply_review(pairs, source, path, folder, relabel=relabel, fresh=fresh), dropped)


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

    split, row = argument("split", split, str | None), argument("row", row, int)
    label = argument("label", label, float | None)
    return pick_pair(
        read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows),
        split,
        row,
        label,
    )


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
    spreadsheet would run the text as a formula.

    Args:
        out: The folder for the files.
        format: Format of the files: jsonl or csv.
        raw: Write CSV for programs, without the apostrophes.

    Returns:
        The files, in the order of the splits.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid; the format is unknown; or a file would
            be replaced or can't be written.
        DataError: The source is not readable, a text or label is not usable, or a column contains bytes.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> [path.name for path in pairkit.export("pairs.tsv", "plain", format="csv")]
        ['train.csv']
    """
    from pairkit.dataset.making.made import FileFormat, export_pairs

    folder = argument("out", out, Path)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return export_pairs(pairs, folder, cast("FileFormat", format), raw=raw, fresh=fresh)


@options()
def write(
    source: Source,
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    fresh: bool = False,
) -> MadeDataset:
    """Write pairs as a dataset folder with a card, ready for `datasets.load_dataset` and the Hub.

    Args:
        out: The folder.

    Returns:
        What was written.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid, or `out` contains other files or can't
            be written.
        DataError: The source is not readable, a text or label is not usable, or there are no pairs.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.write([{"text1": "a", "text2": "b", "label": 1}], "mine")
        >>> pairkit.read("mine")
        PairDataset of mine: 1 pairs, labels 0 and 1 (100.0 % are 1); train 1
    """
    from pairkit.dataset.making.made import make_written

    folder = argument("out", out, Path)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return make_written(pairs, source, folder, fresh=fresh)


@options(
    sources=Option(metavar="DATASETS", repeat=True, positional=True),
    conflicts=Option(metavar="NAME", main=True),
)
def merge(
    sources: Sequence[Source] | Mapping[str, Source],
    out: str | Path | None = None,
    *,
    conflicts: str = "error",
    split_sizes: Sequence[float] | None = None,
    cut_negatives: bool = False,
    seed: int = 42,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    dropped: str | Path | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Join datasets: each pair once, and no text, issue or cluster in two splits.

    Rows keep their splits. If two splits share a text, issue or cluster, the rows of only one
    split are kept (first test, then validation), and other rows are left out with a reason.

    Args:
        sources: Folders, files or Hub ids. In Python also anything that `read` takes, or a mapping of names
            to these. The column `source` has the name or path; other columns are kept.
        conflicts: What to do if labels of a pair differ: error, drop (the pair) or first (the first dataset's
            label).
        split_sizes: Sizes of new splits: the proportions of train, validation and test.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid; a setting is invalid; or `out` contains
            other files or can't be written.
        DataError: The source is not readable, a text or label is not usable; conflicting labels; labels
            joined with scores; or no pair is left.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.merge(["pairs.tsv", "pairs.tsv"], "both")
        >>> result.statistics["dropped_pairs"], len(result.pairs)
        ({'repeated': 8}, 8)
    """
    from pairkit.dataset.making.merging import make_merged, named

    folder = argument("out", out, Path | None)
    settings = _settings(conflicts, split_sizes, cut_negatives, seed)
    by_name = named(sources)
    pairs = {
        name: read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
        for name, source in by_name.items()
    }
    return _with_dropped(make_merged(pairs, by_name, folder, settings=settings, fresh=fresh), dropped)


@options()
def split(
    source: Source,
    out: str | Path | None = None,
    *,
    split_sizes: Sequence[float] = (0.8, 0.1, 0.1),
    cut_negatives: bool = False,
    seed: int = 42,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str = "error",
    dropped: str | Path | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Divide a dataset into train, validation and test that share no text, issue or cluster.

    Rows that share a text, directly or through other rows, are in one split. So are near-identical texts.

    Args:
        cut_negatives: Drop negatives whose texts are in different splits. For datasets whose negatives
            connect all texts: only positives then group the texts.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: The source does not exist, a setting is invalid, or `out` contains other files.
        DataError: The source is not readable, a text or label is not usable, or a group of connected rows is
            too large for these sizes.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.split("pairs.tsv", split_sizes=(0.5, 0.25, 0.25))
        >>> {name: rows.height for name, rows in result.pairs.splits.items()}
        {'train': 4, 'validation': 2, 'test': 2}
    """
    from pairkit.dataset.making.made import make_split

    folder = argument("out", out, Path | None)
    sizes = argument("split_sizes", split_sizes, list[float])
    settings = _settings("error", sizes, cut_negatives, seed)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return _with_dropped(make_split(pairs, source, folder, settings=settings, fresh=fresh), dropped)


@options(
    source=Option(metavar="DOCUMENTS", positional=True),
    rules=Option(metavar="NAME,…", main=True),
    max_chars=Option(metavar="N"),
)
def extract(
    source: Source,
    out: str | Path | None = None,
    *,
    rules: Sequence[str] | str | None = None,
    columns: Mapping[str, str] | None = None,
    max_chars: int = 1000,
    split_sizes: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 42,
    dropped: str | Path | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> MadeDataset:
    """Make positive pairs from the structure of documents.

    Such pairs help a weak model and may harm a good one: train with --accept-on, which keeps the backbone
    unless the model is better. No document is in two splits. Texts that occur in several documents, such as
    the heading "Overview" or the link "here", are left out.

    Args:
        source: A folder of Markdown, HTML and text files, or a table. A table's rows have a title and a body,
            a question and an answer, or a long text.
        rules: Rules that make pairs: title-body, question-answer, section or links. `section` pairs a heading
            with the paragraph below it, and two paragraphs of a section; `links` pairs a link's text with its
            target. Default: all.
        columns: For a table: the columns of title, body, question, answer and document, as role=name. Several
            rows may belong to one document. By default common names are recognised.
        max_chars: Maximum characters of a text, which is cut after a whole sentence or word.

    Returns:
        The dataset, with the rows that were left out. Its folder has the columns anchor, positive,
        rule, url1, url2 (the documents) and place.

    Raises:
        ConfigError: The source does not exist; a setting is invalid; or `out` contains other files or can't
            be written.
        DataError: The source is not readable or has no documents; no pair is left; or a group of connected
            rows is too large for these sizes.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> rows = [{"title": "Backups", "body": "They run at night."}, {"title": "Keys", "body": "Soon."}]
        >>> result = pairkit.extract(rows, split_sizes=(1, 0, 0), progress=False)
        >>> result.statistics["rules"], result.pairs.rows["text1"].to_list()
        ({'title-body': 2}, ['Backups', 'Keys'])
    """
    from pydantic import PositiveInt

    from pairkit.base.settings import split_at_commas
    from pairkit.extracting import make_mined
    from pairkit.extracting.extract_pairs import RULES

    folder = argument("out", out, Path | None)
    named = tuple(RULES) if rules is None else argument("rules", split_at_commas(rules), tuple[str, ...])
    settings = {
        "rules": list(named),
        "max_chars": argument("max_chars", max_chars, PositiveInt),
        "split": argument("split_sizes", split_sizes, list[float]),
        "seed": argument("seed", seed, int),
    }
    roles = argument("columns", columns, dict[str, str] | None)
    made = make_mined(source, folder, columns=roles, settings=settings, fresh=fresh, progress=progress)
    return _with_dropped(made, dropped)


def _settings(
    conflicts: str, split_sizes: Sequence[float] | None, cut_negatives: bool, seed: int
) -> dict[str, Any]:
    return {
        "conflicts": conflicts,
        "split": argument("split_sizes", split_sizes, list[float] | None),
        "cut_negatives": cut_negatives,
        "seed": argument("seed", seed, int),
    }


def _with_dropped(made: MadeDataset, path: str | Path | None) -> MadeDataset:
    """The result, after writing the rows that were left out."""
    if path is not None:
        write_parquet(argument("dropped", path, Path), made.dropped)
    return made
