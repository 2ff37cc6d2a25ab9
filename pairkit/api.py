"""What `pairkit` does for a person in Python, and for the commands of `pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pairkit.app.errors import ConfigError
from pairkit.app.settings import argument
from pairkit.dataset.in_memory import Source
from pairkit.dataset.labels import Meaning, label_rules
from pairkit.dataset.reader import read_pairs
from pairkit.dataset.records import PairDataset

if TYPE_CHECKING:
    from pairkit.app.progress import Listener
    from pairkit.dataset.audit import AuditReport
    from pairkit.dataset.hub import Pushed
    from pairkit.dataset.made import MadeDataset
    from pairkit.dataset.show import ShownPair
    from pairkit.reports import Report
    from pairkit.reviews import Review


def read(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    split: str | None = None,
) -> PairDataset:
    """Read pairs from wherever they are.

    Args:
        source: A dataset's folder, be it ours or one of `Dataset.save_to_disk`; a Parquet, CSV, TSV, JSON or
            JSON lines file, also packed; a folder of files named after their splits; a Hub id
            (`owner/name`, `owner/name:config`); a DataFrame, a `datasets.Dataset`, a list of dicts; or a
            mapping of splits to any of the latter.
        columns: `text1`, `text2`, `label`, or `anchor`, `positive` and `negative` or `negative_1`,
            `negative_2`, …, to the source's names; by default those in use are recognised.
        labels: What labels count as where that is not certain: a number, or "skip" to leave their rows out,
            such as `{"entailment": 1, "contradiction": 0, "neutral": "skip"}` or "0=1,1=skip,2=0".
        label_range: The lowest and the highest score, such as `(0, 100)`, where scores are neither from 0 to
            1 nor from 0 to 5; they become 0 to 1.
        split: Only this split.

    Returns:
        text1, text2, label and the source's other columns, by split. A triplet is a positive and a row for
        each of its negatives.

    Raises:
        ConfigError: No such source, or a bad mapping.
        DataError: Not readable, a missing column, an empty text or a label that can't be used, with file and
            row.
        RemoteError: The Hub could not be asked.

    Example:
        >>> import pairkit
        >>> pairkit.read("pairs.tsv")
        PairDataset of pairs.tsv: 8 pairs, labels 0 and 1 (50.0 % are 1); train 8
    """
    return read_pairs(source, columns=columns, rules=label_rules(labels, label_range), split=split)


def audit(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    threshold: float | None = None,
) -> AuditReport:
    """Look for what makes a dataset untrustworthy: leaks between splits, repeats, contradictions.

    Args:
        source: As for `read`; empty texts are counted here, not refused.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        threshold: Jaccard similarity of word triples, in (0, 1], from which two texts are near-identical;
            by default 0.8.

    Returns:
        What was found; `leaks` names what two splits share, `check()` raises it.

    Raises:
        ConfigError: As `read`.
        DataError: As `read`.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> pairkit.audit("pairs.tsv").leaks
        []
    """
    from pairkit.dataset.audit import audit_pairs
    from pairkit.dataset.reader import read_frames

    alike = _threshold(threshold)
    columns = argument("columns", columns, dict[str, str] | None)
    return audit_pairs(read_frames(source, columns, label_rules(labels, label_range)), alike)


def report(
    source: Source,
    out: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    seed: int = 42,
    progress: bool | Listener = True,
) -> Report:
    """Describe a dataset: counts, lengths, overlap, what was dropped, samples; as figures and a page.

    Args:
        source: As for `read`.
        out: The report's folder, by default DATASET.report; an earlier report there is replaced.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        seed: Chooses the sample pairs.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        The counts, and where the page is.

    Raises:
        ConfigError: As `read`; matplotlib is missing; or `out` holds something else or can't be written.
        DataError: As `read`; no rows; a damaged statistics.json.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> made = pairkit.report("pairs.tsv", "about", progress=False)
        >>> made.page.name, made.counts["splits"]["all"]["texts"]
        ('index.html', 12)
    """
    from pairkit.reports import make_report

    place, seed = argument("out", out, Path | None), argument("seed", seed, int)
    pairs = read_pairs(source, columns=columns, rules=label_rules(labels, label_range))
    return make_report(pairs, place, seed=seed, progress=progress)


def review(
    source: Source,
    store: str | Path | None = None,
    *,
    n: int | None = None,
    share: float | None = None,
    seed: int | None = None,
    strata: Sequence[str] | None = None,
    each: int | None = None,
    grades: bool | None = None,
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
) -> Review:
    """Have people judge a sample of pairs in a browser: begin a review, or continue it.

    `serve` of what is returned starts the page, `report` says what was found; `pairkit.apply` and
    `llm_labeler.score` take its file. The arguments that choose pairs are those of a new review: they may be
    left out later, and can't be others.

    Args:
        source: As for `read`.
        store: The file of judgements, by default DATASET.review; it is also read as pairs with people's
            labels.
        n: How many pairs; by default the `share`.
        share: Which share of the pairs, by default 0.1.
        seed: Decides which pairs, and in which order people see them; 42 by default.
        strata: What strata differ in: label, evidence, llm, confidence, judges, relation, source, split; by
            default as many of these as the dataset tells and the sample is large enough for.
        each: How many people judge each pair; by default everybody judges all.
        grades: Ask for a grade of 0 to 5; by default yes or no, unless labels are scores.
        question: What people are asked about each pair.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.

    Returns:
        The review.

    Raises:
        ConfigError: As `read`; a bad setting, or one that an earlier review of that file does not have.
        DataError: As `read`; the file is damaged, or a review of other pairs.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> pairkit.review("pairs.tsv", "people.review", n=4)
        Review('people.review': 4 pairs, 0 judgements, 0 people)
    """
    from pairkit.app.settings import load_settings
    from pairkit.reviews import Wanted, begin

    place = argument("store", store, Path | None)
    given = {"n": n, "share": share, "seed": seed, "strata": strata}
    given |= {"each": each, "grades": grades, "question": question}
    wanted = load_settings(Wanted, flags=given)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range)
    if place is None and not isinstance(source, str | Path):
        raise ConfigError("store = None: pairs that are in memory have no place of their own; give a file")
    return begin(pairs, place, wanted)


def apply(
    source: Source,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    relabel: bool = False,
    drop_unsure: bool = False,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Make the dataset without the pairs whose label people rejected, or with their labels.

    Each row tells whether it was `reviewed`, by how many `reviewers`, and their `decision`. Rows that nobody
    judged stay as they are.

    Args:
        source: As for `read`.
        out: The dataset's folder; None writes nothing.
        store: The review's file, by default DATASET.review.
        relabel: Give people's labels to the pairs, rather than leave them out.
        drop_unsure: Leave out also the pairs of which people can't tell, or on which they are divided.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        fresh: As for `merge`.

    Returns:
        The dataset, with what was left out.

    Raises:
        ConfigError: As `merge`; or there is no such review.
        DataError: As `read`; nothing is judged yet, or no pair of the dataset.
        LeakError: Two splits share something, as `audit` finds.
        RemoteError: As `read`.
    """
    from pairkit.reviews import apply_review, review_beside

    place, file = argument("out", out, Path | None), argument("store", store, Path | None)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range)
    path = file or review_beside(pairs.source)
    return apply_review(pairs, source, path, place, relabel=relabel, drop_unsure=drop_unsure, fresh=fresh)


def show(
    source: Source,
    *,
    split: str | None = None,
    row: int = 0,
    label: int | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
) -> ShownPair:
    """One pair side by side, with the words that both texts share marked.

    Args:
        source: As for `read`.
        split: By default the last one, which is test where there is one.
        row: Which of its rows, from 0.
        label: Count only pairs with this label.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.

    Returns:
        A pair that draws itself on a terminal and in a notebook; `save` writes an SVG file.

    Raises:
        ConfigError: As `read`; or there is no such split or row.
        DataError: As `read`.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> pairkit.show("pairs.tsv", row=1, label=0).row["text2"]
        'Please add a dark theme.'
    """
    from pairkit.dataset.show import pick_pair

    split, row = argument("split", split, str | None), argument("row", row, int)
    label = argument("label", label, float | None)
    return pick_pair(read(source, columns=columns, labels=labels, label_range=label_range), split, row, label)


def export(
    source: Source,
    out: str | Path,
    *,
    file_format: str = "jsonl",
    raw: bool = False,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
) -> list[Path]:
    """Write each split as a file of JSON lines or CSV.

    In CSV an apostrophe is put before a text that a spreadsheet would run as a formula.

    Args:
        source: As for `read`.
        out: A folder; files of other content that stand there are not replaced.
        file_format: `jsonl` or `csv`.
        raw: CSV for programs, without the apostrophes.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.

    Returns:
        The files, in the order of the splits.

    Raises:
        ConfigError: As `read`; another format; or a file would be replaced or can't be written.
        DataError: As `read`; or a column holds bytes.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> [path.name for path in pairkit.export("pairs.tsv", "plain", file_format="csv")]
        ['train.csv']
    """
    from pairkit.dataset.export import FileFormat, export_pairs

    place = argument("out", out, Path)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range)
    return export_pairs(pairs, place, cast("FileFormat", file_format), raw=raw)


def write(
    source: Source,
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Write pairs as a dataset's folder with a card, which `datasets.load_dataset` and the Hub take as it is.

    Args:
        source: As for `read`; its splits are kept.
        out: The folder.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        fresh: Replace a dataset of `pairs` that was made otherwise.

    Returns:
        What was written.

    Raises:
        ConfigError: As `read`; or `out` holds something else or can't be written.
        DataError: As `read`; or there are no pairs.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> made = pairkit.write([{"text1": "a", "text2": "b", "label": 1}], "mine")
        >>> pairkit.read("mine")
        PairDataset of mine: 1 pairs, labels 0 and 1 (100.0 % are 1); train 1
    """
    from pairkit.dataset.make import make_written

    place = argument("out", out, Path)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range)
    return make_written(pairs, source, place, fresh=fresh)


def merge(
    sources: Sequence[Source] | Mapping[str, Source],
    out: str | Path | None = None,
    *,
    conflicts: str = "error",
    split: Sequence[float] | None = None,
    cut_negatives: bool = False,
    seed: int = 42,
    threshold: float | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Join datasets into one, in which each pair stands once and no text, issue or cluster in two splits.

    A row keeps the split that it has. Where splits of different datasets share something, the stronger one
    keeps it (test, then validation, then train) and rows of the weaker one are left out, each with a reason.

    Args:
        sources: Datasets, each as for `read`; a mapping names them, else paths do. The column `source` tells
            which a row is from; the other columns are kept.
        out: The dataset's folder; None writes nothing.
        conflicts: What to do where two rows of the same texts have different labels: `error`, `drop` both, or
            believe the `first` dataset.
        split: Shares of train, validation and test: make the splits anew, as `pairkit.split` does.
        cut_negatives: With `split`: see `pairkit.split`.
        seed: With `split`: decides what goes where.
        threshold: Jaccard similarity of word triples, in (0, 1], from which texts are near-identical; by
            default 0.8.
        columns: As for `read`, for all datasets.
        labels: As for `read`, for all datasets.
        label_range: As for `read`, for all datasets.
        fresh: Replace a dataset of `pairs` that was made otherwise.

    Returns:
        The dataset, with what was left out.

    Raises:
        ConfigError: As `read`; a bad setting; or `out` holds something else or can't be written.
        DataError: As `read`; conflicting labels; labels joined with scores; or no pair is left.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> made = pairkit.merge(["pairs.tsv", "pairs.tsv"], "both")
        >>> made.statistics["dropped_pairs"], len(made.pairs)
        ({'repeated': 8}, 8)
    """
    from pairkit.dataset.make import make_merged, named

    place = argument("out", out, Path | None)
    settings = _settings(conflicts, split, cut_negatives, seed, threshold)
    given = named(sources)
    pairs = {
        name: read(source, columns=columns, labels=labels, label_range=label_range)
        for name, source in given.items()
    }
    return make_merged(pairs, given, place, settings=settings, fresh=fresh)


def split(
    source: Source,
    out: str | Path | None = None,
    *,
    split: Sequence[float] = (0.8, 0.1, 0.1),
    cut_negatives: bool = False,
    seed: int = 42,
    threshold: float | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    fresh: bool = False,
) -> MadeDataset:
    """Divide a dataset into train, validation and test anew, so that they share no text, issue or cluster.

    Rows that have a text in common, directly or through others, go to one split. So do near-identical texts.

    Args:
        source: As for `read`; the splits that it has are forgotten.
        out: The dataset's folder; None writes nothing.
        split: Shares of train, validation and test, in proportion.
        cut_negatives: Let positives alone tie texts, and leave out the negatives that would then reach over
            splits. It is for datasets whose negatives join everything to everything.
        seed: Decides what goes where.
        threshold: As for `merge`.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        fresh: As for `merge`.

    Returns:
        The dataset, with what was left out.

    Raises:
        ConfigError: As `merge`.
        DataError: As `read`; or too much hangs together for such shares.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> made = pairkit.split("pairs.tsv", split=(0.5, 0.25, 0.25))
        >>> {name: rows.height for name, rows in made.pairs.splits.items()}
        {'train': 4, 'validation': 2, 'test': 2}
    """
    from pairkit.dataset.make import make_split

    place = argument("out", out, Path | None)
    shares = argument("split", split, list[float])
    settings = _settings("error", shares, cut_negatives, seed, threshold)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range)
    return make_split(pairs, source, place, settings=settings, fresh=fresh)


def mine(
    source: Source,
    out: str | Path | None = None,
    *,
    strategies: Sequence[str] | str | None = None,
    columns: Mapping[str, str] | None = None,
    min_chars: int = 3,
    max_chars: int = 1000,
    split: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 42,
    threshold: float | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> MadeDataset:
    """Take pairs of texts that belong together out of documents, by their structure.

    No document stands in two splits. A text that stands for several others, such as the heading "Overview" or
    the link "here", makes no pair.

    Args:
        source: A folder of Markdown, HTML and text files, or one of them; or a table as for `read`, whose
            rows have a title and a body, a question and an answer, or a long text.
        out: The dataset's folder; None writes nothing.
        strategies: Some of `title-body`, `question-answer`, `section` (a heading and what stands below it,
            two paragraphs of a section), `links` (a link's words and the document that it leads to) and
            `adjacent` (neighbouring paragraphs or sentences); by default all but the last.
        columns: Of a table: `title`, `body`, `question`, `answer`, and `document`, of which several rows may
            be, to the source's names; by default those in use are recognised.
        min_chars: Characters that a text must have.
        max_chars: Characters that a text is cut to, after a whole sentence or word.
        split: Shares of train, validation and test.
        seed: Decides what goes where, and which paragraphs of a section are taken.
        threshold: As for `merge`.
        fresh: As for `merge`.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        The dataset, with what was left out. Its folder has the columns anchor, positive, strategy, url1, url2
        (the documents) and place.

    Raises:
        ConfigError: No such source; a bad setting; or `out` holds something else or can't be written.
        DataError: Not readable; no documents; no pair is left; too much hangs together for such shares.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> rows = [{"title": "Backups", "body": "They run at night."}, {"title": "Keys", "body": "Soon."}]
        >>> made = pairkit.mine(rows, split=(1, 0, 0), progress=False)
        >>> made.statistics["strategies"], made.pairs.rows["text1"].to_list()
        ({'title-body': 2}, ['Backups', 'Keys'])
    """
    from pydantic import PositiveInt

    from pairkit.app.settings import split_at_commas
    from pairkit.mining import make_mined
    from pairkit.mining.mine import DEFAULT

    place = argument("out", out, Path | None)
    named = (
        DEFAULT
        if strategies is None
        else argument("strategies", split_at_commas(strategies), tuple[str, ...])
    )
    least, most = argument("min_chars", min_chars, PositiveInt), argument("max_chars", max_chars, PositiveInt)
    settings = {
        "strategies": list(named),
        "min_chars": least,
        "max_chars": most,
        "split": argument("split", split, list[float]),
        "seed": argument("seed", seed, int),
        "threshold": _threshold(threshold),
    }
    given = argument("columns", columns, dict[str, str] | None)
    return make_mined(source, place, columns=given, settings=settings, fresh=fresh, progress=progress)


def _settings(
    conflicts: str, split: Sequence[float] | None, cut_negatives: bool, seed: int, threshold: float | None
) -> dict[str, Any]:
    return {
        "conflicts": conflicts,
        "split": argument("split", split, list[float] | None),
        "cut_negatives": cut_negatives,
        "seed": argument("seed", seed, int),
        "threshold": _threshold(threshold),
    }


def _threshold(given: float | None) -> float:
    from pydantic import Field

    from pairkit.similarity.near_duplicates import DEFAULT_THRESHOLD

    similarity = Annotated[float, Field(gt=0, le=1)]
    found: float = DEFAULT_THRESHOLD if given is None else argument("threshold", given, similarity)
    return found


def push(
    folder: str | Path, repo: str, *, public: bool = False, revision: str | None = None, dry_run: bool = False
) -> Pushed:
    """Send a dataset's folder, as `gis`, `label` or `pairs` wrote it, to the Hugging Face Hub in one commit.

    The token is that of the environment variable HF_TOKEN.

    Args:
        folder: The dataset, with its card.
        repo: `owner/name`; created unless it exists.
        public: Let everybody see it. Else a repository that is created is private, and a public one refused.
        revision: Branch to commit to, created unless it exists; the main one if None.
        dry_run: Send nothing; say what would be sent.

    Returns:
        What was sent, and the commit's address.

    Raises:
        ConfigError: `repo` is no repository's name, or is public.
        DataError: `folder` is no such dataset, or holds a link.
        AuthError: There is no token, or it lacks the right to write there.
        RemoteError: The Hub can't be reached or failed; nothing was changed, so call it again.
    """
    from pairkit.dataset.export import push_dataset

    repo = argument("repo", repo, str)
    return push_dataset(
        argument("folder", folder, Path), repo, public=public, revision=revision, dry_run=dry_run
    )
