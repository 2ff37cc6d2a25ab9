"""Reading of training rows: each distinct text is kept once, and contradicting rows are handled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from aoe_train.objectives.objective_checks import positive_threshold
from aoe_train.objectives.objective_settings import IN_BATCH, RANKED, ObjectiveSettings
from aoe_train.objectives.training_rows import (
    ABSENT,
    Examples,
    ReadingReport,
    TextSelection,
    kind_of,
)
from aoe_train.settings.run_settings import Conflicts
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.dataset.labels import AS_FOUND, LabelRules, score_scale
from pairkit.dataset.negative_columns import NEGATIVES
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.proposed_columns import Meant
from pairkit.dataset.reading.reader import read_rows, split_names
from pairkit.dataset.records import PAIR, against_first, differ, format_bad_rows, label_scale
from pairkit.extracting.html_blocks import without_tags
from pairkit.similarity.groups import Indices
from pairkit.similarity.same_text import first_of_same

Say = Callable[[str], None]
_BLOCK = 1 << 16  # rows processed at once
_MAX_CELLS = 1 << 27  # 1 GiB of text indices
_MAX_WIDTH_RATIO = 4  # widest row by the mean row


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
    if split is None:
        splits = split_names(source)
        split = splits[0]  # train comes first
        if len(splits) > 1 and split != "train":
            raise ConfigError(
                f"{source_name(source)}: found splits {', '.join(splits)}; expected train"
            )
    read = read_rows(source, columns=columns, split=split, rules=rules, meant=meant)
    ((name, frame),) = read.splits.items()
    if read.bad_rows.height:
        say(f"{source_name(source)}: rows left out: {format_bad_rows(read.bad_rows)}")
    if not frame.height:
        skipped = f" ({read.labels})" if read.labels and read.labels.skipped else ""
        raise DataError(f"no rows; expected at least one{skipped}", path=source_name(source))

    if frame.columns[0] == "text":
        texts = [without_tags(text, source_name(source)) for text in frame["text"]]
        frame = frame.with_columns(text=pl.Series(texts))

    def locate(row: int) -> str:
        return read.place(name, row)

    if NEGATIVES in frame.columns:
        _check_row_width(2 + frame[NEGATIVES].list.len().to_numpy().astype(np.int64), locate)
    reading = ReadingReport(read.labels, written=read.written[name], bad_rows=read.bad_rows)
    return resolve_conflicts(
        replace(distinct(frame), reading=reading), conflicts, locate=locate, say=say
    )


def _check_row_width(widths: np.ndarray, place: Callable[[int], str]) -> None:
    """Refuse outliers in the number of negatives: all rows are padded to the widest one."""
    widest = int(widths.max())
    mean = float(widths.mean())
    cells = len(widths) * widest
    if cells > _MAX_CELLS and widest > _MAX_WIDTH_RATIO * mean:
        raise DataError(
            f"{place(int(widths.argmax()))}: has {widest - 2:,} negatives, the average row {mean - 2:.1f};"
            f" padding all {len(widths):,} rows to that many takes {8 * cells / 2**30:.1f} GiB: remove some"
        )


def negative_counts(examples: Examples) -> dict[str, int]:
    """Number of rows by their number of negatives, with keys for JSON; empty for rows without negatives."""
    if examples.kind != "triplet":
        return {}
    counts = Counter[int]()
    for start in range(0, len(examples), _BLOCK):
        negatives = examples.rows[start : start + _BLOCK, 2:]
        counts.update((negatives != ABSENT).sum(axis=1).tolist())
    return {str(count): counts[count] for count in sorted(counts)}


def negatives_in_words(counts: Mapping[str, int]) -> str:
    """Format the counts of `negative_counts`."""
    numbers = [int(number) for number in counts]
    low = min(numbers)
    high = max(numbers)
    if low == high:
        return f"{high} a row"
    fewer = sum(counts.values()) - counts[str(high)]
    return (
        f"{low} to {high} a row; {fewer:,} of {sum(counts.values()):,} rows have fewer than {high}"
    )


def check_labels(examples: Examples, source: Source, objective: ObjectiveSettings) -> None:
    """Refuse labels from which an objective can't learn."""
    labels = examples.labels
    active = objective.weights.active.keys()
    if labels is None:
        return
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
    if active <= IN_BATCH and high < positive_threshold(
        objective, examples.kind, score_scale(low, high)
    ):
        raise DataError(
            f"the highest label is {high:g}, so there are no positives, which {', '.join(active)} needs; add"
            " some, or lower objective.positive_from for scores",
            path=source_name(source),
        )


def distinct(frame: pl.DataFrame) -> Examples:
    """Turn rows of `pairkit.dataset.reading.reader` into examples with each distinct text once."""
    kind = kind_of(frame.columns, binary=frame.schema.get("label") == pl.Int64)
    columns = [frame[name] for name in frame.columns if name not in ("label", NEGATIVES)]
    if kind == "triplet":
        negatives = frame[NEGATIVES].list
        width = int(negatives.len().to_numpy().max())
        columns += [negatives.get(column, null_on_oob=True) for column in range(width)]
    row_by_row = np.arange(len(columns) * frame.height).reshape(len(columns), -1).T.ravel()
    texts = pl.concat(columns).gather(row_by_row).to_arrow(compat_level=pl.CompatLevel.oldest())
    encoded = texts.dictionary_encode()  # in order of first occurrence
    indices = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int64)
    labels = frame["label"].cast(pl.Float32).to_numpy() if "label" in frame.columns else None
    return Examples(encoded.dictionary.to_pylist(), indices.reshape(-1, len(columns)), labels, kind)


_PART_SIZE = 1 << 20  # texts of the rows whose pairs are compared at once
_NO_ROW = -1  # row of a label that comes from no row
_REMEDY = (
    "set conflicts to drop (leave them out), first (trust the first row) or keep (train on all)"
)


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
    message = (
        f"{count:,} pairs have different labels, such as {_example(examples, conflicting, locate)}"
    )
    if conflicts == "error":
        raise DataError(f"{message}; {_REMEDY}")
    dropped = conflicting if conflicts == "drop" else conflicting.filter(against_first(scale))
    rows = np.unique(dropped["row"].to_numpy())
    rows = rows[rows != _NO_ROW] if conflicts != "keep" else rows[:0]
    if len(rows) == len(examples):
        raise DataError(f"{message}; no row would be left: {_REMEDY}")
    say(f"{message}; {f'{len(rows):,} rows are left out' if len(rows) else 'they are kept'}")
    reading = replace(examples.reading, conflicts=count, conflicting_rows=len(rows))
    return replace(_without_rows(examples, rows), reading=reading)


def _conflicting_labels(examples: Examples, scale: float) -> pl.DataFrame:
    """All labels of pairs that have different ones; compares a part of the pairs at a time to save memory."""
    same = first_of_same(examples.texts)
    parts = 1 + examples.rows.size // _PART_SIZE
    low, high = map(pl.col, PAIR)
    # One number for each pair finds the few repeated pairs in a third of the memory.
    is_repeated = (low * len(examples.texts) + high).is_duplicated()
    frames = [
        pair_labels(examples, same, part, parts).filter(is_repeated).filter(differ(scale))
        for part in range(parts)
    ]
    return pl.concat(frames).sort("row", maintain_order=True)


def pair_labels(examples: Examples, same: Indices, part: int = 0, parts: int = 1) -> pl.DataFrame:
    """Labels of pairs by row: first, second, label, row, `PAIR`; row -1 labels texts and themselves.

    `PAIR` has the numbers of the first texts that are the `same`.
    """
    frame = pl.concat(
        _labels_of_rows(examples, same, start, part, parts)
        for start in range(0, max(1, len(examples)), _BLOCK)
    )
    if examples.kind == "graded":
        return frame
    low, high = map(pl.col, PAIR)
    with_itself = frame.filter((low == high) & (pl.col("label") == 0))
    similar = with_itself.unique(PAIR).with_columns(
        label=pl.lit(1.0, pl.Float32), row=pl.lit(_NO_ROW, pl.Int64)
    )
    return pl.concat([similar, frame])


def _labels_of_rows(
    examples: Examples, same: Indices, start: int, part: int, parts: int
) -> pl.DataFrame:
    rows = np.asarray(examples.rows[start : start + _BLOCK])
    row_numbers = np.arange(start, start + len(rows))
    labels = np.ones(len(rows), np.float32)
    if examples.labels is not None:
        labels = np.asarray(examples.labels[start : start + _BLOCK])
    columns = [(rows[:, 0], rows[:, 1], labels, row_numbers)]
    columns += [
        (rows[:, 0], rows[:, column], 0 * labels, row_numbers) for column in range(2, rows.shape[1])
    ]
    first, second, label, row = (np.concatenate(each) for each in zip(*columns, strict=True))
    low = np.minimum(same[first], same[second])
    high = np.maximum(same[first], same[second])
    chosen = (second != ABSENT) & (low % parts == part)
    named = {
        "first": first,
        "second": second,
        "label": label,
        "row": row,
        PAIR[0]: low,
        PAIR[1]: high,
    }
    frame = pl.DataFrame({name: values[chosen] for name, values in named.items()})
    return frame.sort("row", maintain_order=True)


def _example(examples: Examples, conflicting: pl.DataFrame, locate: Callable[[int], str]) -> str:
    """The first conflicting pair, its first row, and the row whose label differs most."""
    first = conflicting.filter(pl.col("row") != _NO_ROW).sort("row", maintain_order=True).head(1)
    labels = conflicting.join(first.select(PAIR), on=PAIR, how="semi")
    difference = (pl.col("label") - labels["label"][0]).abs()
    others = labels.sort(difference, descending=True, maintain_order=True)
    rows = [labels.row(0, named=True), others.row(0, named=True)]
    texts = " and ".join(
        repr(one_line(examples.texts[index], 60))
        for index in (first["first"][0], first["second"][0])
    )
    sources = [
        f"{row['label']:g} "
        + ("as a text and itself" if row["row"] == _NO_ROW else f"in {locate(row['row'])}")
        for row in rows
    ]
    return f"{texts} ({', '.join(sources)})"


def _without_rows(examples: Examples, rows: np.ndarray) -> Examples:
    """The examples without these rows and the texts that only they have."""
    if not len(rows):
        return examples
    kept = np.delete(examples.rows, rows, axis=0)
    labels = None if examples.labels is None else np.delete(examples.labels, rows)
    used, first = np.unique(kept[kept >= 0], return_index=True)
    in_order = used[np.argsort(first)]
    new_index = np.full(len(examples.texts) + 1, -1)  # ABSENT is -1, the last entry
    new_index[in_order] = np.arange(len(in_order))
    return replace(
        examples, texts=TextSelection(examples.texts, in_order), rows=new_index[kept], labels=labels
    )
