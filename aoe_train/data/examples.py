"""Training rows from whatever holds them, each distinct text once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
import polars as pl

from aoe_train.data.conflicts import Say, settle, silent
from aoe_train.data.streamed import Streamed, stream_examples
from aoe_train.records import ABSENT, Examples, ReadingReport, check_width, kind_of, no_rows
from aoe_train.settings.training import Conflicts, Streaming
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener, unwatched
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import AS_FOUND, LabelRules
from pairkit.dataset.negatives import NEGATIVES
from pairkit.dataset.reader import read_rows, split_names
from pairkit.dataset.row_stream import files_of_split

_LARGE = 256 << 20  # bytes of files from which rows stay on disk: in memory they take 20 times as much
_BLOCK = 1 << 16  # rows of a round


def read_examples(
    source: Source,
    *,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules = AS_FOUND,
    conflicts: Conflicts = "keep",
    say: Say = silent,
    limit: int | None = None,
    streaming: Streaming = "off",
    show: Listener = unwatched,
) -> Examples:
    """Read rows to train or to evaluate on.

    What the columns are says what the rows mean: a label of 0 and 1 throughout makes `binary` pairs, other
    numbers `graded` ones; anchor and positive make `positive`, negatives beside them `triplet`; a lone text
    column or a text file makes `single`.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit {limit}: expected 1 or more rows")
    chosen = split or _default_split(source)
    if limit is None and _is_streamed(source, chosen, streaming):
        streamed = stream_examples(source, split=chosen, columns=columns, rules=rules, show=show)
        say(_told(source, streamed))
        return settle(streamed.examples, conflicts, place=streamed.place, say=say)
    found = read_rows(source, columns=columns, split=chosen, rules=rules)
    ((name, frame),) = found.splits.items()
    if not frame.height:
        raise no_rows(found.labels, source_name(source))
    frame = frame.head(limit) if limit else frame
    if NEGATIVES in frame.columns:
        widths = 2 + frame[NEGATIVES].list.len().to_numpy().astype(np.int64)
        check_width(widths, lambda row: found.place(name, row))
    examples = distinct(frame)
    examples = replace(examples, reading=ReadingReport(found.labels, written=found.written[name]))
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


def _is_streamed(source: Source, split: str, streaming: Streaming) -> bool:
    """Whether rows stay on disk."""
    if streaming == "off":
        return False
    files = files_of_split(source, split)
    if streaming == "on" and not files:
        raise ConfigError(
            f"{source_name(source)}: only files can be streamed; save its rows as Parquet files and give"
            " their folder, or leave streaming out"
        )
    if not all(path.is_file() for path in files):
        return False  # reading says which is not there
    return streaming == "on" or sum(path.stat().st_size for path in files) >= _LARGE


def _told(source: Source, streamed: Streamed) -> str:
    return (
        f"{source_name(source)}: {len(streamed.examples):,} rows are read from {streamed.folder} as they are"
        f" needed ({streamed.size / (1 << 20):,.0f} MiB); set streaming to off to read them into memory"
    )


def _default_split(source: Source) -> str:
    splits = split_names(source)
    if len(splits) > 1 and "train" not in splits:
        raise ConfigError(f"{source_name(source)}: has the splits {', '.join(splits)}; say which")
    return splits[0]  # train comes first


def distinct(frame: pl.DataFrame) -> Examples:
    """Rows of `pairkit.dataset.reader` without columns of other kinds, each distinct text once."""
    kind = kind_of(frame.columns, binary=frame.schema.get("label") == pl.Int64)
    columns = [frame[name].to_list() for name in frame.columns if name not in ("label", NEGATIVES)]
    if kind == "triplet":
        negatives = frame[NEGATIVES].list
        most = int(negatives.len().to_numpy().max())
        columns += [negatives.get(place, null_on_oob=True).to_list() for place in range(most)]
    numbers: dict[str, int] = {}
    in_rows = chain.from_iterable(zip(*columns, strict=True))
    flat = np.fromiter(
        (ABSENT if text is None else numbers.setdefault(text, len(numbers)) for text in in_rows), np.int64
    )
    labels = frame["label"].cast(pl.Float32).to_numpy() if "label" in frame.columns else None
    return Examples(list(numbers), flat.reshape(-1, len(columns)), labels, kind)
