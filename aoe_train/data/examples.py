"""Training rows from whatever holds them, each distinct text once; rows that contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from aoe_train.records import ABSENT, Examples, ReadingReport, TextSelection, check_width, kind_of, no_rows
from aoe_train.settings.training import Conflicts
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.bad_rows import format_bad_rows
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import AS_FOUND, LabelRules
from pairkit.dataset.negatives import NEGATIVES
from pairkit.dataset.reader import read_rows, split_names
from pairkit.dataset.records import AGAINST_FIRST, DIFFER, PAIR, unordered

Say = Callable[[str], None]
_BLOCK = 1 << 16  # rows of a round


def silent(_: str) -> None:
    """A `Say` that discards messages."""


def read_examples(
    source: Source,
    *,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules = AS_FOUND,
    conflicts: Conflicts = "keep",
    say: Say = silent,
    limit: int | None = None,
) -> Examples:
    """Read rows to train or to evaluate on.

    What the columns are says what the rows mean: a label of 0 and 1 throughout makes `binary` pairs, other
    numbers `graded` ones; anchor and positive make `positive`, negatives beside them `triplet`; a lone text
    column or a text file makes `single`.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit {limit}: expected 1 or more rows")
    found = read_rows(source, columns=columns, split=split or _default_split(source), rules=rules)
    ((name, frame),) = found.splits.items()
    if found.bad_rows.height:
        say(f"{source_name(source)}: rows left out: {format_bad_rows(found.bad_rows)}")
    if not frame.height:
        raise no_rows(found.labels, source_name(source))
    frame = frame.head(limit) if limit else frame
    if NEGATIVES in frame.columns:
        widths = 2 + frame[NEGATIVES].list.len().to_numpy().astype(np.int64)
        check_width(widths, lambda row: found.place(name, row))
    examples = distinct(frame)
    examples = replace(
        examples, reading=ReadingReport(found.labels, written=found.written[name], bad_rows=found.bad_rows)
    )
    return settle(examples, conflicts, place=lambda row: found.place(name, row), say=say)


def negative_counts(examples: Examples) -> dict[str, int]:
    """How many rows have how many negatives, as JSON can hold it; nothing for rows that have none."""
    if examples.kind != "triplet":
        return {}
    counts = Counter[int]()
    for start in range(0, len(examples), _BLOCK):
        negatives = examples.rows[start : start + _BLOCK, 2:]
        counts.update((negatives != ABSENT).sum(axis=1).tolist())
    return {str(count): counts[count] for count in sorted(counts)}


def negatives_in_words(counts: Mapping[str, int]) -> str:
    """What `negative_counts` counts, for people."""
    fewest, most = (end(map(int, counts)) for end in (min, max))
    if fewest == most:
        return f"{most} a row"
    fewer = sum(counts.values()) - counts[str(most)]
    return f"{fewest} to {most} a row; {fewer:,} of {sum(counts.values()):,} rows have fewer than {most}"


def check_labels(examples: Examples, source: Source) -> None:
    """Refuse labels that rank nothing, for objectives that compare the similarity of pairs."""
    labels = examples.labels
    if labels is not None and (labels == labels[0]).all():
        raise DataError(
            f"all {len(labels)} labels are {labels[0]:g}; this objective needs two different ones (bare"
            " positives, as anchor and positive, train with ibn or contrastive)",
            path=source_name(source),
        )


def _default_split(source: Source) -> str:
    splits = split_names(source)
    if len(splits) > 1 and "train" not in splits:
        raise ConfigError(f"{source_name(source)}: has the splits {', '.join(splits)}; say which")
    return splits[0]  # train comes first


def distinct(frame: pl.DataFrame) -> Examples:
    """Rows of `pairkit.dataset.reader` without columns of other kinds, each distinct text once."""
    kind = kind_of(frame.columns, binary=frame.schema.get("label") == pl.Int64)
    columns = [frame[name] for name in frame.columns if name not in ("label", NEGATIVES)]
    if kind == "triplet":
        negatives = frame[NEGATIVES].list
        most = int(negatives.len().to_numpy().max())
        columns += [negatives.get(place, null_on_oob=True) for place in range(most)]
    row_by_row = np.arange(len(columns) * frame.height).reshape(len(columns), -1).T.ravel()
    texts = pl.concat(columns).gather(row_by_row).to_arrow(compat_level=pl.CompatLevel.oldest())
    encoded = texts.dictionary_encode()  # numbered in the order in which they come first
    numbers = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int64)
    labels = frame["label"].cast(pl.Float32).to_numpy() if "label" in frame.columns else None
    return Examples(encoded.dictionary.to_pylist(), numbers.reshape(-1, len(columns)), labels, kind)


_SHARE = 1 << 20  # texts in rows whose pairs are compared at a time
_ANY_ROW = -1  # in place of a row's number: what is true of any text
_REMEDY = (
    "set conflicts to drop to leave them out, to first to believe the first row, or to keep to train on them"
)


def settle(examples: Examples, conflicts: Conflicts, *, place: Callable[[int], str], say: Say) -> Examples:
    """Deal with rows that say different things of one pair of texts, whichever of the two comes first.

    Labelled pairs do that with different labels; a triplet says 1 of anchor and positive and 0 of anchor and
    negative, so that one whose negative is its positive contradicts itself. A text and itself are alike: what
    says 0 of them, as a triplet whose negative is its anchor, contradicts that.
    """
    if examples.kind in ("positive", "single"):  # which say nothing but 1
        return examples
    differing = _differing(examples)
    if not differing.height:
        return examples
    number = differing.select(PAIR).n_unique()
    told = f"{number:,} pairs have different labels, such as {_example(examples, differing, place)}"
    if conflicts == "error":
        raise DataError(f"{told}; {_REMEDY}")
    lost = differing if conflicts == "drop" else differing.filter(AGAINST_FIRST)
    rows = np.unique(lost["row"].to_numpy())
    rows = rows[rows != _ANY_ROW] if conflicts != "keep" else rows[:0]
    if len(rows) == len(examples):
        raise DataError(f"{told}; no row would be left: {_REMEDY}")
    say(f"{told}; {f'{len(rows):,} rows are left out' if len(rows) else 'they are kept'}")
    reading = replace(examples.reading, conflicts=number, conflicting_rows=len(rows))
    return replace(_without(examples, rows), reading=reading)


def _differing(examples: Examples) -> pl.DataFrame:
    """All that is said of pairs of which different things are said, a share of the pairs at a time."""
    shares = 1 + examples.rows.size // _SHARE
    low, high = map(pl.col, PAIR)
    # Most pairs come once, and a number for each tells that in a third of the memory.
    is_repeated = (low * len(examples.texts) + high).is_duplicated()
    found = [
        statements(examples, share, shares).filter(is_repeated).filter(DIFFER) for share in range(shares)
    ]
    return pl.concat(found).sort("row", maintain_order=True)


def statements(examples: Examples, share: int = 0, shares: int = 1) -> pl.DataFrame:
    """What labelled pairs or triplets say of pairs, in their order: one, other, label, row, and `PAIR`.

    Row -1 says that a text and itself are alike, where some row says that they are not.
    """
    frame = pl.concat(
        _said(examples, start, share, shares) for start in range(0, max(1, len(examples)), _BLOCK)
    )
    if examples.kind != "graded":
        alone = frame.filter((pl.col("one") == pl.col("other")) & (pl.col("label") == 0))
        alike = alone.unique("one").with_columns(
            label=pl.lit(1.0, pl.Float32), row=pl.lit(_ANY_ROW, pl.Int64)
        )
        frame = pl.concat([alike, frame])
    return frame.with_columns(*unordered("one", "other"))


def _said(examples: Examples, start: int, share: int, shares: int) -> pl.DataFrame:
    """What some rows say of the pairs of a share, row by row."""
    rows = np.asarray(examples.rows[start : start + _BLOCK])
    number = np.arange(start, start + len(rows))
    labels = np.ones(len(rows), np.float32)
    if examples.labels is not None:
        labels = np.asarray(examples.labels[start : start + _BLOCK])
    said = [(rows[:, 0], rows[:, 1], labels, number)]
    said += [(rows[:, 0], rows[:, column], 0 * labels, number) for column in range(2, rows.shape[1])]
    one, other, label, row = (np.concatenate(part) for part in zip(*said, strict=True))
    own = (other != ABSENT) & (np.minimum(one, other) % shares == share)
    frame = pl.DataFrame({"one": one[own], "other": other[own], "label": label[own], "row": row[own]})
    return frame.sort("row", maintain_order=True)


def _example(examples: Examples, differing: pl.DataFrame, place: Callable[[int], str]) -> str:
    """The first pair, with the first row and the first that differs from it."""
    first = differing.filter(pl.col("row") != _ANY_ROW).sort("row", maintain_order=True).head(1)
    own = differing.join(first.select(PAIR), on=PAIR, how="semi")
    label = own["label"][0]
    rows = [own.row(0, named=True), own.filter(pl.col("label") != label).row(0, named=True)]
    texts = " and ".join(
        repr(one_line(examples.texts[number], 60)) for number in (first["one"][0], first["other"][0])
    )
    places = [
        f"{row['label']:g} as a text and itself"
        if row["row"] == _ANY_ROW
        else f"{row['label']:g} in {place(row['row'])}"
        for row in rows
    ]
    return f"{texts} ({', '.join(places)})"


def _without(examples: Examples, rows: np.ndarray) -> Examples:
    """The other rows, with the texts that they still have."""
    if not len(rows):
        return examples
    kept = np.delete(examples.rows, rows, axis=0)
    labels = None if examples.labels is None else np.delete(examples.labels, rows)
    used, first = np.unique(kept[kept >= 0], return_index=True)
    in_order = used[np.argsort(first)]
    numbers = np.full(len(examples.texts) + 1, -1)  # the last place is that of an absent text, -1
    numbers[in_order] = np.arange(len(in_order))
    return replace(examples, texts=TextSelection(examples.texts, in_order), rows=numbers[kept], labels=labels)
