"""What `pairkit` does for a person in Python, and for the commands of `pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pairkit.app.errors import ConfigError
from pairkit.app.flag import INPUT, OUTPUT, Flag
from pairkit.app.settings import argument, between_commas
from pairkit.dataset.flags import (
    BadRows,
    Columns,
    Dataset,
    Fresh,
    LabelRange,
    Labels,
    Out,
    OutNeeded,
    Seed,
    Shares,
)
from pairkit.dataset.in_memory import Source
from pairkit.dataset.labels import label_rules
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

_SAMPLE = "Sample (of a new review)"


def read(
    source: Dataset,
    *,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    split: str | None = None,
) -> PairDataset:
    """Read pairs from wherever they are.

    Args:
        source: A folder, a CSV, TSV, JSONL or Parquet file, or a Hub id. A folder is one of ours, one of
            `Dataset.save_to_disk`, or one of files named after their splits; a file may be packed; a Hub id
            is `owner/name` or `owner/name:config`. In Python also a DataFrame, a `datasets.Dataset`, a list
            of dicts, or a mapping of splits to any of these.
        columns: Which column is which, such as text1=title,label=same; 1,2,3 without a header line. The roles
            are `text1`, `text2`, `label`, or `anchor`, `positive` and `negative` or `negative_1`,
            `negative_2`, …; in Python a mapping of roles to names. By default usual names are recognised.
        labels: What labels count as, such as 0=1,1=skip,2=0. In Python also a mapping of labels to numbers or
            "skip", which leaves rows out, such as `{"entailment": 1, "contradiction": 0, "neutral": "skip"}`.
            Labels that are not named keep their usual meaning, such as 1 and 0 for yes and no.
        label_range: The lowest and highest score, such as 0,100. They become 0 and 1; needed if scores are
            neither from 0 to 1 nor from 0 to 5.
        bad_rows: error or skip: for rows that lack a text or label. skip leaves them out and counts them on
            stderr; beside an output folder, FOLDER.bad-rows.jsonl has them, each with the reason.
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
    return read_pairs(source, columns=columns, rules=label_rules(labels, label_range, bad_rows), split=split)


def audit(
    source: Dataset,
    *,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
) -> AuditReport:
    """Look for leaks between splits, contradictions, repeats, and rows that lack a text or label.

    Texts are near-identical if the Jaccard similarity of their word triples is 0.8 or more. The command exits
    with 3 if the dataset leaks, or has rows that other commands refuse.

    Args:
        source: As for `read`.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.

    Returns:
        What was found; `leaks` names what two splits share, `check()` raises it. Rows that lack a text or
        label are left out and counted in `bad_rows`.

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

    columns = argument("columns", columns, dict[str, str] | None)
    rules = label_rules(labels, label_range, bad_rows)
    skips = rules.bad_rows == "skip"
    return audit_pairs(read_frames(source, columns, rules), skips_bad_rows=skips)


def report(
    source: Dataset,
    out: Annotated[str | Path | None, Flag("--out -o", metavar="FILE", panel=OUTPUT, main=True)] = None,
    *,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    seed: Annotated[int, Seed] = 42,
    progress: bool | Listener = True,
) -> Report:
    """Describe a dataset on one page: counts, lengths, word overlap, what was dropped, and sample pairs.

    Args:
        source: As for `read`.
        out: The page. An earlier report there is replaced. Default: DATASET.report.html.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.
        seed: Decides which pairs are shown.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        The counts, and where the page is.

    Raises:
        ConfigError: As `read`; or `out` is something else or can't be written.
        DataError: As `read`; or no rows.
        RemoteError: As `read`.

    Example:
        >>> import pairkit
        >>> made = pairkit.report("pairs.tsv", "about.html", progress=False)
        >>> made.page.name, made.counts["splits"]["all"]["texts"]
        ('about.html', 12)
    """
    from pairkit.reports import make_report

    place, seed = argument("out", out, Path | None), argument("seed", seed, int)
    pairs = read_pairs(source, columns=columns, rules=label_rules(labels, label_range, bad_rows))
    return make_report(pairs, place, seed=seed, progress=progress)


def review(
    source: Dataset,
    store: Annotated[str | Path | None, Flag(metavar="FILE", panel=INPUT)] = None,
    *,
    n: Annotated[int | None, Flag(metavar="N", panel=_SAMPLE, main=True)] = None,
    seed: Annotated[int | None, Flag(metavar="N", panel=_SAMPLE)] = None,
    strata: Annotated[Sequence[str] | None, Flag(metavar="A,B,…", panel=_SAMPLE, read=between_commas)] = None,
    each: Annotated[int | None, Flag(metavar="N", panel=_SAMPLE)] = None,
    grades: Annotated[bool | None, Flag("--grades/--yes-no", panel=_SAMPLE)] = None,
    question: Annotated[str | None, Flag(metavar="TEXT", panel=_SAMPLE)] = None,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
) -> Review:
    """Have people judge a sample of pairs in a browser, blind; then estimate how right the labels are.

    Each answer is saved at once, and the same call continues a review. `pairkit.apply` and
    `llm_labeler.score` take its file. Arguments that choose pairs belong to a new review: later they may be
    left out, but not changed.

    Args:
        source: As for `read`.
        store: The review's file. It is also read as pairs with people's labels. Default: DATASET.review.
        n: Number of pairs. Default: a tenth.
        seed: Decides which pairs, and in which order. Default: 42.
        strata: Columns to stratify by, such as label,split. Of label, evidence, llm, confidence, judges,
            relation, source and split. Default: those that the dataset has and the sample is large enough
            for.
        each: Number of people who judge a pair. Default: all.
        grades: Ask for grades of 0 to 5. Default: if labels are scores.
        question: The question about each pair.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.

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
    given = {"n": n, "seed": seed, "strata": strata}
    given |= {"each": each, "grades": grades, "question": question}
    wanted = load_settings(Wanted, flags=given)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    if place is None and not isinstance(source, str | Path):
        raise ConfigError("store = None: pairs that are in memory have no place of their own; give a file")
    return begin(pairs, place, wanted)


def apply(
    source: Dataset,
    out: Annotated[str | Path | None, OutNeeded] = None,
    *,
    store: Annotated[str | Path | None, Flag(metavar="FILE", panel=INPUT)] = None,
    relabel: Annotated[bool, Flag(main=True)] = False,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    fresh: Fresh = False,
) -> MadeDataset:
    """Make the dataset without the pairs whose label people rejected, or with people's labels.

    Each row tells whether it was `reviewed`, by how many `reviewers`, and their `decision`. Rows that nobody
    judged stay as they are.

    Args:
        source: As for `read`.
        out: The dataset's folder. None writes nothing.
        store: The review's file. Default: DATASET.review.
        relabel: Keep pairs that people rejected, with people's labels.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.
        fresh: Replace a dataset made with other settings.

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
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    path = file or review_beside(pairs.source)
    return apply_review(pairs, source, path, place, relabel=relabel, fresh=fresh)


def show(
    source: Dataset,
    *,
    split: Annotated[str | None, Flag(metavar="NAME", main=True)] = None,
    row: Annotated[int, Flag(metavar="N", main=True)] = 0,
    label: Annotated[int | None, Flag(metavar="N", main=True)] = None,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
) -> ShownPair:
    """Show one pair side by side, with the words that both texts share marked.

    Args:
        source: As for `read`.
        split: train, validation or test. Default: the last.
        row: Number of the pair, from 0.
        label: Count only pairs with this label.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.

    Returns:
        A pair that draws itself on a terminal and in a notebook.

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
    return pick_pair(
        read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows),
        split,
        row,
        label,
    )


def export(
    source: Dataset,
    out: Annotated[str | Path, Out],
    *,
    file_format: Annotated[str, Flag("--format", metavar="NAME", panel=OUTPUT, main=True)] = "jsonl",
    raw: Annotated[bool, Flag(panel=OUTPUT)] = False,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
) -> list[Path]:
    """Write each split as a file of JSON lines or CSV.

    In CSV an apostrophe is put before a text that begins with = + - @, a tab or a line end, because a
    spreadsheet would run it as a formula.

    Args:
        source: As for `read`.
        out: The folder for the files. Files of other content in it are not replaced.
        file_format: jsonl or csv.
        raw: CSV for programs, without the apostrophes.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.

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
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return export_pairs(pairs, place, cast("FileFormat", file_format), raw=raw)


def write(
    source: Dataset,
    out: str | Path,
    *,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    fresh: Fresh = False,
) -> MadeDataset:
    """Write pairs as a dataset's folder with a card, which `datasets.load_dataset` and the Hub take as it is.

    Args:
        source: As for `read`; its splits are kept.
        out: The folder.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.
        fresh: Replace a dataset made with other settings.

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
    from pairkit.dataset.made import make_written

    place = argument("out", out, Path)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return make_written(pairs, source, place, fresh=fresh)


def merge(
    sources: Annotated[
        Sequence[Source] | Mapping[str, Source], Flag(metavar="DATASETS", positional=True, repeat=True)
    ],
    out: Annotated[str | Path | None, OutNeeded] = None,
    *,
    conflicts: Annotated[str, Flag(metavar="NAME", main=True)] = "error",
    split: Annotated[Sequence[float] | None, Shares] = None,
    cut_negatives: bool = False,
    seed: Annotated[int, Seed] = 42,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    fresh: Fresh = False,
) -> MadeDataset:
    """Join datasets: each pair once, and no text, issue or cluster in two splits.

    Rows keep their splits. If two splits share a text, issue or cluster, it stays in test, or else in
    validation, and the rows that would put it into another split are left out, each with a reason.

    Args:
        sources: Folders, files or Hub ids. In Python also anything that `read` takes, or a mapping of names
            to these. The column `source` has the name or path; other columns are kept.
        out: The dataset's folder. None writes nothing.
        conflicts: If labels of a pair differ: error, drop (the pair) or first (the first dataset's label).
        split: New splits: shares of train, validation and test.
        cut_negatives: See `split`.
        seed: Decides every random choice.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.
        fresh: Replace a dataset made with other settings.

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
    from pairkit.dataset.made import make_merged, named

    place = argument("out", out, Path | None)
    settings = _settings(conflicts, split, cut_negatives, seed)
    given = named(sources)
    pairs = {
        name: read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
        for name, source in given.items()
    }
    return make_merged(pairs, given, place, settings=settings, fresh=fresh)


def split(
    source: Dataset,
    out: Annotated[str | Path | None, OutNeeded] = None,
    *,
    split: Annotated[Sequence[float], Shares] = (0.8, 0.1, 0.1),
    cut_negatives: bool = False,
    seed: Annotated[int, Seed] = 42,
    columns: Columns = None,
    labels: Labels = None,
    label_range: LabelRange = None,
    bad_rows: BadRows = "error",
    fresh: Fresh = False,
) -> MadeDataset:
    """Divide a dataset into train, validation and test that share no text, issue or cluster.

    Rows that have a text in common, directly or through others, go to one split. So do near-identical texts.

    Args:
        source: As for `read`. Its own splits are ignored.
        out: The dataset's folder. None writes nothing.
        split: Shares of train, validation and test.
        cut_negatives: Drop negatives whose texts are in different splits. For datasets whose negatives
            connect all texts: only positives then decide which texts belong together.
        seed: Decides every random choice.
        columns: As for `read`.
        labels: As for `read`.
        label_range: As for `read`.
        bad_rows: As for `read`.
        fresh: Replace a dataset made with other settings.

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
    from pairkit.dataset.made import make_split

    place = argument("out", out, Path | None)
    shares = argument("split", split, list[float])
    settings = _settings("error", shares, cut_negatives, seed)
    pairs = read(source, columns=columns, labels=labels, label_range=label_range, bad_rows=bad_rows)
    return make_split(pairs, source, place, settings=settings, fresh=fresh)


def mine(
    source: Annotated[Source, Flag(metavar="DOCUMENTS", positional=True)],
    out: Annotated[str | Path | None, OutNeeded] = None,
    *,
    strategies: Annotated[Sequence[str] | str | None, Flag(metavar="NAME,…", main=True)] = None,
    columns: Columns = None,
    max_chars: Annotated[int, Flag(metavar="N")] = 1000,
    split: Annotated[Sequence[float], Shares] = (0.8, 0.1, 0.1),
    seed: Annotated[int, Seed] = 42,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> MadeDataset:
    """Take pairs of texts that belong together out of documents, by their structure.

    Such pairs help a weak model and may cost a good one: train with --accept-on, which keeps the backbone
    unless the model is better. No document is in two splits. A text that several others share, such as the
    heading "Overview" or the link "here", makes no pair.

    Args:
        source: A folder of Markdown, HTML and text files, or a table. A table's rows have a title and a body,
            a question and an answer, or a long text.
        out: The dataset's folder. None writes nothing.
        strategies: title-body, question-answer, section or links. `section` pairs a heading with what is
            below it, and two paragraphs of a section; `links` a link's words with the document it leads to.
            Default: all.
        columns: Of a table: which column is title, body, question, answer or document. Several rows may be of
            one document. By default usual names are recognised.
        max_chars: Characters to which a text is cut, after a whole sentence or word.
        split: Shares of train, validation and test.
        seed: Decides every random choice.
        fresh: Replace a dataset made with other settings.
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
    from pairkit.mining.mine import STRATEGIES

    place = argument("out", out, Path | None)
    named = (
        tuple(STRATEGIES)
        if strategies is None
        else argument("strategies", split_at_commas(strategies), tuple[str, ...])
    )
    settings = {
        "strategies": list(named),
        "max_chars": argument("max_chars", max_chars, PositiveInt),
        "split": argument("split", split, list[float]),
        "seed": argument("seed", seed, int),
    }
    given = argument("columns", columns, dict[str, str] | None)
    return make_mined(source, place, columns=given, settings=settings, fresh=fresh, progress=progress)


def _settings(
    conflicts: str, split: Sequence[float] | None, cut_negatives: bool, seed: int
) -> dict[str, Any]:
    return {
        "conflicts": conflicts,
        "split": argument("split", split, list[float] | None),
        "cut_negatives": cut_negatives,
        "seed": argument("seed", seed, int),
    }


def push(
    folder: Annotated[str | Path, Flag(metavar="DIR", positional=True)],
    repo: Annotated[str, Flag(metavar="OWNER/NAME")],
    *,
    public: Annotated[bool, Flag(main=True)] = False,
    revision: Annotated[str | None, Flag(metavar="NAME")] = None,
    dry_run: Annotated[bool, Flag(main=True)] = False,
) -> Pushed:
    """Send a dataset with its card to the Hugging Face Hub, in one commit. The token is HF_TOKEN.

    Args:
        folder: A dataset made by gis, label or pairs.
        repo: The repository on the Hub. It is created if it is missing.
        public: Make it public. Without this, a new repository is private and a public one is refused.
        revision: Branch to commit to. It is created if it is missing. Default: main.
        dry_run: List what would be sent, and send nothing.

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
