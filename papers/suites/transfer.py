"""SentEval's transfer tasks (Table 3 of the AoE paper, Table 6 of the AnglE paper).

```
DATA_DIR/senteval/{MR,CR,SUBJ,MPQA}.tsv.gz          label, text
        /senteval/SST2-{train,dev,test}.tsv.gz      label, text; train has phrases, as in SentEval
        /senteval/TREC-{train,test}.tsv.gz          coarse, …, text
        /pairs/mrpc-{train,test}.tsv.gz             label, sentence1, sentence2
```

Files may be without `.gz`, or SentEval's own files in its own folders (`MR/rt-polarity.pos`, `SST/binary/…`).
Texts are sorted as in SentEval, by number of words and class, so that the folds are the same. A few texts of
CR and MPQA are empty; as in SentEval's examples, they are encoded as a full stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pairkit.base.errors import DataError
from pairkit.base.system.text_lines import read_whole
from pairkit.dataset.reading.tables import first_row, is_table
from papers.suites.probe import ClassTask, Examples
from papers.suites.published import check_size, read_columns

_Row = tuple[int, tuple[str, ...]]
"""Index of the class, and one or two texts."""

_FILES: dict[str, tuple[tuple[str, int], ...]] = {
    "MR": (("senteval/MR.tsv.gz", 10662),),
    "CR": (("senteval/CR.tsv.gz", 3775),),
    "SUBJ": (("senteval/SUBJ.tsv.gz", 10000),),
    "MPQA": (("senteval/MPQA.tsv.gz", 10606),),
    "SST2": (
        ("senteval/SST2-train.tsv.gz", 67349),
        ("senteval/SST2-dev.tsv.gz", 872),
        ("senteval/SST2-test.tsv.gz", 1821),
    ),
    "TREC": (("senteval/TREC-train.tsv.gz", 5452), ("senteval/TREC-test.tsv.gz", 500)),
    "MRPC": (("pairs/mrpc-train.tsv.gz", 4076), ("pairs/mrpc-test.tsv.gz", 1725)),
}
"""The tables of each task with their published numbers of rows."""

_ORIGINALS = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "SST2": tuple(f"SST/binary/sentiment-{part}" for part in ("train", "dev", "test")),
    "TREC": ("TREC/train_5500.label", "TREC/TREC_10.label"),
    "MRPC": tuple(f"MRPC/msr_paraphrase_{part}.txt" for part in ("train", "test")),
}
# Subjective is 1 in the table; the first file of SentEval is objective.
_CLASSES = {
    "SUBJ": ("1", "0"),
    "TREC": ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
}
TASKS = tuple(_FILES)


def files(task: str, data_dir: Path, split: str) -> tuple[Path, ...]:
    """The files of the first layout that exists, else of the first one; only the split `test` exists."""
    if split != "test":
        return ()
    packed = tuple(data_dir / name for name, _ in _FILES[task])
    plain = tuple(path.with_suffix("") for path in packed)
    originals = tuple(data_dir / name for name in _ORIGINALS[task])
    for layout in (packed, plain, originals):
        if all(path.is_file() for path in layout):
            return layout
    return packed


def read(task: str, found: Sequence[Path]) -> ClassTask:
    """Read a task and check that each part has its published number of examples."""
    if is_table(found[0]):
        parts = [list(_table_rows(task, path)) for path in found]
    elif task in ("SST2", "TREC", "MRPC"):
        parts = [list(_line_rows(task, path)) for path in found]
    else:
        positive, negative = found
        rows: list[_Row] = [(1, (text,)) for text in _lines(positive)]
        rows += [(0, (text,)) for text in _lines(negative)]
        parts = [rows]
    for part, (_, published), path in zip(parts, _FILES[task], found, strict=False):
        check_size(path, len(part), published)
    return ClassTask(task, tuple(map(_examples, parts)), has_f1=task == "MRPC")


def _examples(rows: Sequence[_Row]) -> Examples:
    """Sort rows by number of words, then by class, because the folds depend on the order."""
    classes, texts = zip(*sorted(rows, key=_words_and_class), strict=True)
    columns = [
        [text.strip() or "." for text in column] for column in zip(*texts, strict=True)
    ]
    return Examples(tuple(columns), np.array(classes, np.int64))


def _words_and_class(row: _Row) -> tuple[int, ...]:
    label, texts = row
    return (*(len(text.split()) for text in texts), label)


def _table_rows(task: str, path: Path) -> Iterator[_Row]:
    label = "coarse" if task == "TREC" else "label"
    texts = ["sentence1", "sentence2"] if task == "MRPC" else ["text"]
    rows = read_columns(path, label, *texts).fill_null("").iter_rows()
    for number, (name, *row) in enumerate(rows, start=first_row(path)):
        yield _class(task, name, path, number), tuple(row)


def _line_rows(task: str, path: Path) -> Iterator[_Row]:
    for number, line in enumerate(_lines(path), start=1):
        if task == "MRPC" and number == 1:  # its header
            continue
        fields = _fields(task, line)
        if fields is None:
            raise DataError(
                f"expected a line of SentEval's {task}, found {line[:60]!r}",
                path=path,
                row=number,
            )
        name, *texts = fields
        yield _class(task, name, path, number), tuple(texts)


def _fields(task: str, line: str) -> tuple[str, ...] | None:
    """The class and the texts of a line; None if the number of fields is wrong."""
    match task, line.split("\t"):
        case "TREC", _:  # NUM:dist How far is it …
            kind, _, text = line.partition(" ")
            coarse, _, _ = kind.partition(":")
            return coarse, text
        case "SST2", [text, label]:
            return label, text
        case "MRPC", [label, _, _, first, second]:  # with two ids
            return label, first, second
    return None


def _class(task: str, name: str, path: Path, row: int) -> int:
    known = _CLASSES.get(task, ("0", "1"))
    if name.strip() not in known:
        raise DataError(
            f"class {name!r}; expected {', '.join(known)}", path=path, row=row
        )
    return known.index(name.strip())


def _lines(path: Path) -> list[str]:
    """Lines in UTF-8, or in Latin-1 like SentEval's TREC."""
    data = read_whole(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
