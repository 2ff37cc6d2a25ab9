"""The files of SentEval's transfer tasks: tables of ours, or those that SentEval's script fetches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aoe_train._evaluate.suites.classification import Examples
from pairkit.errors import DataError
from pairkit.lines import read_whole
from pairkit.tables import first_row, is_table, read_table

_TABLES = {
    **{task: (f"senteval/{task}.tsv.gz",) for task in ("MR", "CR", "SUBJ", "MPQA")},
    "SST2": tuple(f"senteval/SST2-{part}.tsv.gz" for part in ("train", "dev", "test")),
    "TREC": tuple(f"senteval/TREC-{part}.tsv.gz" for part in ("train", "test")),
    "MRPC": tuple(f"pairs/mrpc-{part}.tsv.gz" for part in ("train", "test")),
}
_ORIGINALS = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "SST2": tuple(f"SST/binary/sentiment-{part}" for part in ("train", "dev", "test")),
    "TREC": ("TREC/train_5500.label", "TREC/TREC_10.label"),
    "MRPC": tuple(f"MRPC/msr_paraphrase_{part}.txt" for part in ("train", "test")),
}
_CLASSES = {
    "SUBJ": ("1", "0"),  # subjective is 1 in the table, objective the first file of SentEval
    "TREC": ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
}
_EMPTY = "."


class Row(NamedTuple):
    """An example: the number of its class, and one text or two."""

    label: int
    texts: tuple[str, ...]


def locate(task: str, data_dir: Path) -> tuple[Path, ...]:
    """The files of the first layout that is there; those of the first one if none is."""
    packed = tuple(data_dir / name for name in _TABLES[task])
    plain = tuple(path.with_suffix("") for path in packed)
    originals = tuple(data_dir / name for name in _ORIGINALS[task])
    layouts = (packed, plain, originals)
    return next((files for files in layouts if all(path.is_file() for path in files)), packed)


def read_parts(task: str, files: Sequence[Path]) -> list[list[Row]]:
    """The parts of a task, rows as they stand in the files.

    Raises:
        DataError: Not readable, or a column or class that is not expected, with file and row.
    """
    if is_table(files[0]):
        return [list(_table_rows(task, path)) for path in files]
    if task in ("SST2", "TREC", "MRPC"):
        return [list(_line_rows(task, path)) for path in files]
    first, second = files
    return [
        [Row(1, (text,)) for text in _lines(first)] + [Row(0, (text,)) for text in _lines(second)],
    ]


def examples(rows: Sequence[Row]) -> Examples:
    """Rows in SentEval's order, by words and then class: the folds depend on it."""
    ordered = sorted(rows, key=lambda row: (*(len(text.split()) for text in row.texts), row.label))
    columns = zip(*(row.texts for row in ordered), strict=True)
    return Examples(
        tuple([text.strip() or _EMPTY for text in column] for column in columns),
        np.array([row.label for row in ordered], np.int64),
    )


def _table_rows(task: str, path: Path) -> Iterator[Row]:
    label = "coarse" if task == "TREC" else "label"
    texts = ["sentence1", "sentence2"] if task == "MRPC" else ["text"]
    frame = read_table(path)
    absent = [name for name in (label, *texts) if name not in frame.columns]
    if absent:
        raise DataError(
            f"no column {', '.join(absent)}; there are {', '.join(frame.columns)}", path=path, row=1
        )
    rows = frame.select(label, *texts).fill_null("").iter_rows()
    for number, (name, *found) in enumerate(rows, start=first_row(path)):
        yield Row(_class(task, name, path, number), tuple(found))


def _line_rows(task: str, path: Path) -> Iterator[Row]:
    lines = _lines(path)
    for number, line in enumerate(lines, start=1):
        if task == "MRPC" and number == 1:  # the only one of the three with a header
            continue
        fields = _fields(task, line)
        if fields is None:
            raise DataError(f"not a line of SentEval's {task}: {line[:60]!r}", path=path, row=number)
        name, *texts = fields
        yield Row(_class(task, name, path, number), tuple(texts))


def _fields(task: str, line: str) -> tuple[str, ...] | None:
    """The class and the texts of a line; None if it is not as expected."""
    if task == "TREC":  # NUM:dist How far is it …
        kind, _, text = line.partition(" ")
        return kind.partition(":")[0], text
    cells = line.split("\t")
    if task == "SST2":  # text, class
        return (cells[1], cells[0]) if len(cells) == 2 else None
    return (cells[0], cells[3], cells[4]) if len(cells) == 5 else None  # class, two ids, two texts


def _class(task: str, name: str, path: Path, row: int) -> int:
    known = _CLASSES.get(task, ("0", "1"))
    if name.strip() not in known:
        raise DataError(f"class {name!r}; expected {', '.join(known)}", path=path, row=row)
    return known.index(name.strip())


def _lines(path: Path) -> list[str]:
    """Lines of UTF-8, or of Latin-1 where it is not; the last may lack its line end."""
    data = read_whole(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as SentEval fetches TREC
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
