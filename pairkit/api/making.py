"""Make datasets: from rows, other datasets, a review or documents.

The functions import what they need, so that `--help` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairkit.api import ReadRequest, SplitSizes, options
from pairkit.base.cli.options import Request, parameter, takes
from pairkit.base.errors import ConfigError
from pairkit.base.settings import argument, split_at_commas

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.making.made import MadeDataset
    from pairkit.dataset.reading.in_memory import Source


class WriteRequest(ReadRequest, shared=options):
    """The arguments of `write`."""

    source: Source
    out: str | Path
    _: KW_ONLY
    fresh: bool = False


@takes(WriteRequest)
def write(request: WriteRequest) -> MadeDataset:
    """Write pairs as a dataset folder with a card, ready for `datasets.load_dataset` and the Hub.

    Args:
        out: The folder.

    Returns:
        What was written.

    Raises:
        ConfigError: The source does not exist, a mapping is invalid, or `out` can't be replaced or written.
        DataError: The source is not readable, a text or label is not usable, or there are no pairs.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.write([{"text1": "a", "text2": "b", "label": 1}], "mine")
        >>> pairkit.read("mine")
        PairDataset of mine: 1 pairs, labels 0 and 1 (100.0 % are 1); train 1
    """
    from pairkit.dataset.making.made import make_written

    folder = argument("out", request.out, Path)
    pairs = request.pairs_of(request.source)
    return make_written(pairs, request.source, folder, fresh=request.fresh)


class _SplitRequest(ReadRequest, shared=options):
    """The arguments of `merge` and `split` that name no dataset."""

    _: KW_ONLY
    conflicts: str = "error"
    split_sizes: Sequence[float] | None = None
    cut_negatives: bool = False
    seed: int = 42
    dropped: str | Path | None = None
    fresh: bool = False


class MergeRequest(_SplitRequest, shared=options):
    """The arguments of `merge`."""

    sources: Sequence[Source] | Mapping[str, Source] = parameter(
        metavar="DATASETS", repeat=True, positional=True
    )
    out: str | Path | None = None


@takes(MergeRequest)
def merge(request: MergeRequest) -> MadeDataset:
    """Join datasets: each pair once, and no text, issue or cluster in two splits.

    Rows keep their splits. If two splits share a text, issue or cluster, the rows of only one
    split are kept (first test, then validation), and other rows are left out with a reason.

    Args:
        sources: Folders, files or Hub ids. In Python also anything that `read` takes, or a mapping of names
            to these. The column `source` has the name or path; other columns are kept.
        split_sizes: Sizes of new splits: the proportions of train, validation and test.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: A source does not exist, a setting is invalid, or `out` can't be replaced or written.
        DataError: A source is not readable or usable, labels conflict or join scores, or no pair is left.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.merge(["pairs.tsv", "pairs.tsv"], "both")
        >>> result.statistics["dropped_pairs"], len(result.pairs)
        ({'repeated': 8}, 8)
    """
    from pairkit.dataset.making.split_and_merge import make_merged, named

    out = argument("out", request.out, Path | None)
    dropped = _dropped_file(request.dropped, out)
    settings = _split_settings(request, SplitSizes | None)
    sources = named(request.sources)
    pairs = {
        name: request.pairs_of(source, placed=True) for name, source in sources.items()
    }
    dataset = make_merged(pairs, sources, out, settings=settings, fresh=request.fresh)
    return _with_dropped(dataset, dropped, fresh=request.fresh)


class SplitRequest(_SplitRequest, shared=options):
    """The arguments of `split`."""

    source: Source
    out: str | Path | None = None
    _: KW_ONLY
    conflicts: str = "drop"
    split_sizes: Sequence[float] = (0.8, 0.1, 0.1)


@takes(SplitRequest)
def split(request: SplitRequest) -> MadeDataset:
    """Divide a dataset into train, validation and test that share no text, issue or cluster.

    Each pair is kept once, in either order of its texts. Rows that share a text, directly or through other
    rows, are in one split. So are near-identical texts.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: The source does not exist, a setting is invalid, or `out` can't be replaced or written.
        DataError: The source is not readable or usable, labels conflict, or too many rows are connected for
            these sizes.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> result = pairkit.split("pairs.tsv", split_sizes=(0.5, 0.25, 0.25))
        >>> {name: rows.height for name, rows in result.pairs.splits.items()}
        {'train': 4, 'validation': 2, 'test': 2}
    """
    from pairkit.dataset.making.split_and_merge import make_split

    out = argument("out", request.out, Path | None)
    dropped = _dropped_file(request.dropped, out)
    settings = _split_settings(request, SplitSizes)
    source = request.source
    pairs = request.pairs_of(source, placed=True)
    dataset = make_split(pairs, source, out, settings=settings, fresh=request.fresh)
    return _with_dropped(dataset, dropped, fresh=request.fresh)


def _split_settings(request: _SplitRequest, sizes: Any) -> dict[str, Any]:
    """The settings of new splits, whose sizes are of this type."""
    from pairkit.dataset.making.split_and_merge import Conflicts

    return {
        "conflicts": argument("conflicts", request.conflicts, Conflicts),
        "split": argument("split_sizes", request.split_sizes, sizes),
        "cut_negatives": request.cut_negatives,
        "seed": argument("seed", request.seed, int),
    }


class ExtractRequest(Request, shared=options):
    """The arguments of `extract`."""

    source: Source = parameter(metavar="DOCUMENTS", positional=True)
    out: str | Path | None = None
    _: KW_ONLY
    rules: Sequence[str] | str | None = parameter(
        default=None, metavar="NAME,…", main=True
    )
    columns: Mapping[str, str] | None = None
    max_chars: int = parameter(default=1000, metavar="N")
    split_sizes: Sequence[float] = (0.8, 0.1, 0.1)
    seed: int = 42
    dropped: str | Path | None = None
    fresh: bool = False
    progress: bool | Listener = True


@takes(ExtractRequest)
def extract(request: ExtractRequest) -> MadeDataset:
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
        ConfigError: The source does not exist, a setting is invalid, or `out` can't be replaced or written.
        DataError: The source has no readable documents, no pair is left, or too many rows are connected.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import pairkit
        >>> rows = [{"title": "Backups", "body": "They run at night."}, {"title": "Keys", "body": "Soon."}]
        >>> result = pairkit.extract(rows, split_sizes=(1, 0, 0), progress=False)
        >>> result.statistics["rules"], result.pairs.rows["text1"].to_list()
        ({'title-body': 2}, ['Backups', 'Keys'])
    """
    from pydantic import Field, PositiveInt

    from pairkit.extracting.extract_pairs import RULES, RuleName, make_mined

    out = argument("out", request.out, Path | None)
    dropped = _dropped_file(request.dropped, out)
    rules = [*RULES] if request.rules is None else split_at_commas(request.rules)
    settings = {
        "rules": argument(
            "rules", rules, Annotated[list[RuleName], Field(min_length=1)]
        ),
        "max_chars": argument("max_chars", request.max_chars, PositiveInt),
        "split": argument("split_sizes", request.split_sizes, SplitSizes),
        "seed": argument("seed", request.seed, int),
    }
    dataset = make_mined(
        request.source,
        out,
        columns=argument("columns", request.columns, dict[str, str] | None),
        settings=settings,
        fresh=request.fresh,
        progress=request.progress,
    )
    return _with_dropped(dataset, dropped, fresh=request.fresh)


class ApplyRequest(ReadRequest, shared=options):
    """The arguments of `apply_review`."""

    source: Source
    out: str | Path | None = None
    _: KW_ONLY
    store: str | Path | None = None
    relabel: bool = parameter(default=False, main=True)
    dropped: str | Path | None = None
    fresh: bool = False


@takes(ApplyRequest)
def apply_review(request: ApplyRequest) -> MadeDataset:
    """Make a dataset from a review: without the rejected pairs, or with people's labels.

    The columns `reviewed`, `reviewers` (their number) and `decision` record the review of each row. Rows that
    no one judged are unchanged.

    Args:
        relabel: Keep rejected pairs, with people's labels.

    Returns:
        The dataset, with the rows that were left out.

    Raises:
        ConfigError: The source or review does not exist, or `out` can't be replaced or written.
        DataError: The source is not readable or usable, or no pair of it is judged yet.
        LeakError: Two splits share a text, issue or cluster, as in `audit`.
        RemoteError: The Hub could not be reached.
    """
    from pairkit.reviews.review import apply_review, review_beside

    out = argument("out", request.out, Path | None)
    store = argument("store", request.store, Path | None)
    dropped = _dropped_file(request.dropped, out)
    source = request.source
    pairs = request.pairs_of(source)
    path = store or review_beside(pairs.source)
    dataset = apply_review(
        pairs, source, path, out, relabel=request.relabel, fresh=request.fresh
    )
    return _with_dropped(dataset, dropped, fresh=request.fresh)


def _dropped_file(dropped: str | Path | None, out: Path | None) -> Path | None:
    """The file for rows that are left out; refuses one in the dataset's folder, which is replaced as a whole."""
    from pairkit.dataset.table_files import TableFile

    file: Path | None = argument("dropped", dropped, TableFile | None)
    if file and out and out.resolve() in file.resolve().parents:
        raise ConfigError(
            f"dropped = {file}: is in the dataset's folder {out}; choose another place"
        )
    return file


def _with_dropped(
    dataset: MadeDataset, file: Path | None, *, fresh: bool
) -> MadeDataset:
    """The result, after writing the rows that were left out."""
    from pairkit.dataset.table_files import save_table

    if file is not None:
        save_table(file, dataset.dropped, fresh=fresh)
    return dataset
