"""Reading of training rows: each distinct text is kept once, and contradicting rows are handled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from aoe_train.objectives.objective_checks import positive_threshold
from aoe_train.objectives.objective_settings import IN_BATCH, RANKED, ObjectiveSettings
from aoe_train.objectives.training_rows import (
    ABSENT,
    EMPTY_REPORT,
    Examples,
    Kind,
    ReadingReport,
    TextSelection,
)
from aoe_train.settings.run_settings import Conflicts
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import is_blank, one_line
from pairkit.dataset.labels import AS_FOUND, LabelRules, score_scale
from pairkit.dataset.reading.columns import Meant
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.reader import read_rows, split_names
from pairkit.dataset.records import (
    BAD_ROWS,
    NEGATIVES,
    PAIR,
    differs_from_first,
    format_bad_rows,
    join_bad_rows,
    label_scale,
    labels_differ,
)
from pairkit.extracting.html_blocks import without_tags
from pairkit.similarity.groups import Indices
from pairkit.similarity.terms import first_of_same

Say = Callable[[str], None]
_ROWS_AT_ONCE = 1 << 16
# Rows are padded to the widest. Above 1 GiB of text indices, it may be at most 4 times as wide as the mean row.
_MAX_CELLS = 1 << 27
_MAX_WIDTH_RATIO = 4
# Texts of the rows whose pairs are compared at once.
_PART_SIZE = 1 << 20
# The row of a label that comes from no row: a text is similar to itself.
_NO_ROW = -1


def silent(_: str) -> None:
    """A `Say` that discards messages."""


def read_examples(
    source: Source,
    *,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules = AS_FOUND,
    conflicts: Conflicts = "keep",
    meant: Meant = "rows",
    say: Say = silent,
) -> Examples:
    """Read training or evaluation rows.

    The columns decide the kind of rows. Labels 0 and 1 make `binary` pairs, other numbers `graded` pairs.
    Anchor and positive make `positive` rows, with negatives `triplet` rows. One text column or a text file
    makes `single` texts.
    """
    where = source_name(source)
    if split is None:
        splits = split_names(source)
        split = splits[0]  # train comes first
        if len(splits) > 1 and split != "train":
            raise ConfigError(
                f"{where}: found splits {', '.join(splits)}; expected train"
            )
    read = read_rows(source, columns=columns, split=split, rules=rules, meant=meant)
    ((name, frame),) = read.splits.items()
    locate = partial(read.place, name)
    bad_rows = read.bad_rows
    if frame.columns[0] == "text":
        frame, without_text = _strip_tags(frame["text"], read.origins[name], where)
        bad_rows = join_bad_rows([bad_rows, without_text])
    if bad_rows.height:
        say(f"{where}: rows left out: {format_bad_rows(bad_rows)}")
    if not frame.height:
        skipped = f" ({read.labels})" if read.labels and read.labels.skipped else ""
        raise DataError(f"no rows; expected at least one{skipped}", path=where)

    if NEGATIVES in frame.columns:
        _check_row_width(frame[NEGATIVES].list.len().to_numpy(), locate)
    reading = ReadingReport(read.labels, written=read.written[name], bad_rows=bad_rows)
    examples = distinct(frame, reading)
    return resolve_conflicts(examples, conflicts, locate=locate, say=say)


def _strip_tags(
    html: pl.Series, origins: pl.DataFrame, where: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The texts without tags, and bad rows for those of tags only."""
    texts = []
    bad_rows = []
    for value, origin in zip(html, origins.iter_rows(), strict=True):
        text = without_tags(value, where)
        if is_blank(text):
            bad_rows.append((*origin, "empty_text", value, None, None))
        else:
            texts.append(text)
    bad = pl.DataFrame(bad_rows, schema=BAD_ROWS, orient="row")
    return pl.DataFrame({"text": texts}), bad


def _check_row_width(negatives: np.ndarray, locate: Callable[[int], str]) -> None:
    """Refuse outliers in the number of negatives: all rows are padded to the widest one."""
    rows = len(negatives)
    most = int(negatives.max())
    mean = negatives.mean()
    cells = rows * (2 + most)
    if cells > _MAX_CELLS and 2 + most > _MAX_WIDTH_RATIO * (2 + mean):
        raise DataError(
            f"{locate(int(negatives.argmax()))}: has {most:,} negatives, the average row {mean:.1f}; padding"
            f" all {rows:,} rows to that many takes {8 * cells / 2**30:.1f} GiB: remove some"
        )


def negative_counts(examples: Examples) -> dict[str, int]:
    """Number of rows by their number of negatives, with keys for JSON; empty for rows without negatives."""
    if examples.kind != "triplet":
        return {}
    return count_values((examples.rows[:, 2:] != ABSENT).sum(axis=1))


def count_values(values: np.ndarray) -> dict[str, int]:
    """How often each value occurs, with keys for JSON."""
    distinct_values, counts = np.unique(values, return_counts=True)
    return dict(zip(map(str, distinct_values.tolist()), counts.tolist(), strict=True))


def negatives_in_words(counts: Mapping[str, int]) -> str:
    """Format the counts of `negative_counts`."""
    low = min(map(int, counts))
    high = max(map(int, counts))
    if low == high:
        return f"{high} a row"
    rows = sum(counts.values())
    fewer = rows - counts[str(high)]
    return f"{low} to {high} a row; {fewer:,} of {rows:,} rows have fewer than {high}"


def check_labels(
    examples: Examples, source: Source, objective: ObjectiveSettings
) -> None:
    """Refuse labels from which an objective can't learn."""
    labels = examples.labels
    if labels is None:
        return
    active = objective.weights.active.keys()
    low = float(labels.min())
    high = float(labels.max())
    if low == high and RANKED & active:
        remedy = "add pairs with other labels"
        if high > 0:
            remedy += ", or train positives only with --preset=simcse"
        raise DataError(
            f"all {len(labels)} labels are {low:g}, so there is nothing to rank; {remedy}",
            path=source_name(source),
        )
    if not active <= IN_BATCH:
        return
    if high < positive_threshold(objective, examples.kind, score_scale(low, high)):
        raise DataError(
            f"the highest label is {high:g}, so there are no positives, which {', '.join(active)} needs; add"
            " some, or lower objective.positive_from for scores",
            path=source_name(source),
        )


def distinct(frame: pl.DataFrame, reading: ReadingReport = EMPTY_REPORT) -> Examples:
    """Turn rows of `pairkit.dataset.reading.reader` into examples with each distinct text once."""
    columns = [
        frame[name] for name in frame.columns if name not in ("label", NEGATIVES)
    ]
    kind: Kind = "single" if "text" in frame.columns else "positive"
    labels = None
    if "label" in frame.columns:
        kind = "binary" if frame["label"].dtype == pl.Int64 else "graded"
        labels = frame["label"].cast(pl.Float32).to_numpy()
    elif NEGATIVES in frame.columns:
        kind = "triplet"
        negatives = frame[NEGATIVES].list
        width = int(negatives.len().to_numpy().max())
        columns += [negatives.get(column, null_on_oob=True) for column in range(width)]

    cells = np.arange(len(columns) * frame.height).reshape(len(columns), -1)
    row_by_row = pl.concat(columns).gather(cells.T.ravel())
    texts = row_by_row.to_arrow(compat_level=pl.CompatLevel.oldest())
    encoded = texts.dictionary_encode()  # in order of first occurrence
    indices = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int64)
    rows = indices.reshape(-1, len(columns))
    return Examples(encoded.dictionary.to_pylist(), rows, labels, kind, reading)


def resolve_conflicts(
    examples: Examples, conflicts: Conflicts, *, locate: Callable[[int], str], say: Say
) -> Examples:
    """Handle rows that give one pair of texts different labels, in either order of the texts.

    Case, blanks and punctuation of texts are ignored (`same_text`). A triplet labels (anchor, positive) 1 and
    (anchor, negative) 0. A text is similar to itself, so a row that labels a text and itself 0, such as a
    triplet whose negative is its anchor, is a conflict, too.
    """
    if examples.kind in ("positive", "single"):  # all labelled 1
        return examples
    scale = 1.0 if examples.labels is None else label_scale(pl.Series(examples.labels))
    conflicting = _conflicting_labels(examples, scale)
    if not conflicting.height:
        return examples
    count = conflicting.select(PAIR).n_unique()
    example = _format_example(examples, conflicting, locate)
    message = f"{count:,} pairs have different labels, such as {example}"
    if conflicts == "error":
        raise DataError(
            f"{message}; set conflicts to drop (leave them out), first (trust the first row) or keep (train"
            " on all)"
        )
    reading = replace(examples.reading, conflicts=count)
    if conflicts == "keep":
        say(f"{message}; they are kept")
        return replace(examples, reading=reading)

    if conflicts == "first":
        conflicting = conflicting.filter(differs_from_first(scale))
    dropped = conflicting.filter(pl.col("row") != _NO_ROW)["row"].unique().to_numpy()
    if len(dropped) == len(examples):
        raise DataError(
            f"{message}; no row would be left: correct them, or set conflicts to keep (train on all)"
        )
    say(f"{message}; {len(dropped):,} rows are left out")
    reading = replace(reading, conflicting_rows=len(dropped))
    return replace(without_rows(examples, dropped), reading=reading)


def _conflicting_labels(examples: Examples, scale: float) -> pl.DataFrame:
    """All labels of pairs that have different ones; compares a part of the pairs at a time to save memory."""
    same = first_of_same(examples.texts)
    parts = 1 + examples.rows.size // _PART_SIZE
    low, high = map(pl.col, PAIR)
    # One number for each pair finds the few repeated pairs in a third of the memory.
    is_repeated = (low * len(examples.texts) + high).is_duplicated()
    conflicting = []
    for part in range(parts):
        blocks = [
            _labels_of_block(examples, same, start, part, parts)
            for start in range(0, len(examples), _ROWS_AT_ONCE)
        ]
        labels = pl.concat(blocks)
        if examples.kind != "graded":
            labels = pl.concat([_labels_with_itself(labels), labels])
        conflicting.append(labels.filter(is_repeated).filter(labels_differ(scale)))
    return pl.concat(conflicting).sort("row", maintain_order=True)


def _labels_with_itself(labels: pl.DataFrame) -> pl.DataFrame:
    """The label 1 for each text that a row labels 0 with itself."""
    low, high = map(pl.col, PAIR)
    wrong = labels.filter((low == high) & (pl.col("label") == 0)).unique(PAIR)
    return wrong.with_columns(
        label=pl.lit(1.0, pl.Float32), row=pl.lit(_NO_ROW, pl.Int64)
    )


def _labels_of_block(
    examples: Examples, same: Indices, start: int, part: int, parts: int
) -> pl.DataFrame:
    """Labels of a part of the pairs, by row; `PAIR` has the numbers of the first texts that are the `same`."""
    rows = examples.rows[start : start + _ROWS_AT_ONCE]
    columns = rows.shape[1] - 1
    row = np.tile(np.arange(start, start + len(rows)), columns)
    first = np.tile(rows[:, 0], columns)
    second = rows[:, 1:].T.ravel()
    if examples.labels is None:
        label = np.zeros(len(second), np.float32)
        label[: len(rows)] = 1  # the positives
    else:
        label = examples.labels[start : start + _ROWS_AT_ONCE]
    low = np.minimum(same[first], same[second])
    high = np.maximum(same[first], same[second])
    pairs = dict(zip(PAIR, (low, high), strict=True))
    frame = pl.DataFrame(
        {"first": first, "second": second, "label": label, "row": row, **pairs}
    )
    chosen = (second != ABSENT) & (low % parts == part)
    return frame.filter(chosen).sort("row", maintain_order=True)


def _format_example(
    examples: Examples, conflicting: pl.DataFrame, locate: Callable[[int], str]
) -> str:
    """The first conflicting pair, its first row, and the row whose label differs most."""
    first = conflicting.filter(pl.col("row") != _NO_ROW).head(1)
    labels = conflicting.join(first.select(PAIR), on=PAIR, how="semi")
    difference = (pl.col("label") - labels["label"][0]).abs()
    others = labels.sort(difference, descending=True, maintain_order=True)
    sources = []
    for frame in (labels, others):
        label = frame["label"][0]
        row = frame["row"][0]
        place = "as a text and itself" if row == _NO_ROW else f"in {locate(row)}"
        sources.append(f"{label:g} {place}")
    one = one_line(examples.texts[first["first"].item()], 60)
    other = one_line(examples.texts[first["second"].item()], 60)
    return f"{one!r} and {other!r} ({', '.join(sources)})"


def without_rows(examples: Examples, rows: np.ndarray) -> Examples:
    """The examples without these rows and the texts that only they have."""
    kept = np.delete(examples.rows, rows, axis=0)
    labels = None if examples.labels is None else np.delete(examples.labels, rows)
    used, first = np.unique(kept[kept != ABSENT], return_index=True)
    in_order = used[np.argsort(first)]
    new_index = np.full(len(examples.texts) + 1, ABSENT)  # ABSENT is -1, the last entry
    new_index[in_order] = np.arange(len(in_order))
    texts = TextSelection(examples.texts, in_order)
    return replace(examples, texts=texts, rows=new_index[kept], labels=labels)
