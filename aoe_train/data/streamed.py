"""Training rows whose texts, numbers and labels stay on disk: the same `Examples` as rows read into memory.

The shards are read twice. First each text becomes a digest of 128 bits, while rows and labels are checked
(`read_into`). Sorted, a share of them at a time, the digests say which texts are equal, and so which number
each has (`number_texts`). The second reading keeps the texts that are new. In memory are some thousand rows,
one share of the digests and the distinct labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from aoe_train.model.run_folder import cache_dir
from aoe_train.model.tokens.grown_arrays import ArrayLayout, GrowingArrays, made_arrays, mapped
from aoe_train.model.tokens.texts_on_disk import MappedTexts
from aoe_train.records import ABSENT, Examples, Kind, ReadingReport, check_width, kind_of, no_rows
from pairkit.app.errors import DataError
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import LabelRules, LabelsRead
from pairkit.dataset.row_stream import Piece, RowStream, files_of_split, open_rows
from pairkit.dataset.tables import class_names_of_file, first_row
from pairkit.system.files import remove, sha256, write_errors, write_json
from pairkit.system.folders import read_object

_SHARE = 1 << 19  # digests that are sorted at a time; each takes some 60 bytes then
_BLOCK = 1 << 20  # digests of a round over all of them


def number_texts(digests: np.ndarray, path: Path) -> int:
    """Number texts in the order in which they come first; equal texts have equal numbers."""
    count = len(digests)
    with GrowingArrays(path.parent, path.stem, {path.stem: ArrayLayout(np.int64)}) as grown:
        for start, end in _blocks(count):  # so that a full disk shows now, and not in a mapped page
            grown.add(path.stem, np.zeros(end - start, np.int64))
        grown.keep()
    with write_errors(path):
        numbers = np.load(path, mmap_mode="r+") if count else np.empty(0, np.int64)
        for share in _shares(digests):
            numbers[share] = _first_of_equals(digests, share)
        return _numbered(numbers)


def _shares(digests: np.ndarray) -> Iterator[np.ndarray]:
    """Places of the digests that begin alike: equal ones are in one share, in their order."""
    bits = max(0, (len(digests) - 1) // _SHARE).bit_length()
    for share in range(1 << bits):
        found = [
            start + np.flatnonzero(digests[start:end, 0] >> np.uint64(64 - bits) == share)
            if bits
            else np.arange(start, end)
            for start, end in _blocks(len(digests))
        ]
        if found:
            yield np.concatenate(found)


def _first_of_equals(digests: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each of these places, which are in order, the first one with an equal digest."""
    found = digests[places]
    order = np.lexsort((found[:, 1], found[:, 0]))  # stable: the first of equals comes first
    found = found[order]
    begins = np.ones(len(found), np.bool_)
    begins[1:] = (found[1:] != found[:-1]).any(axis=1)
    own = places[order]
    firsts = np.empty_like(places)
    firsts[order] = own[begins][np.cumsum(begins) - 1]
    return firsts


def _numbered(firsts: np.ndarray) -> int:
    """Put numbers in the place of first places, from the front on."""
    known = 0
    for start, end in _blocks(len(firsts)):
        block = np.array(firsts[start:end])
        new = block == np.arange(start, end)
        count = int(new.sum())
        firsts[start:end][new] = np.arange(known, known + count)
        firsts[start:end][~new] = firsts[block[~new]]  # numbered already, as they come before
        known += count
    return known


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _BLOCK):
        yield start, min(start + _BLOCK, count)


ARRAYS = ("rows", "labels", "numbers", "texts", "text_ends")
"""What is made: rows and labels as in `Examples`, each row's number in its file, and the texts."""

WORK = "work"
"""The folder of what only the making needs."""

_DIGESTS, _CELLS, _WIDTHS, _TEXT_NUMBERS = (
    f"{WORK}/{name}" for name in ("digests", "cells", "widths", "text_numbers")
)
_READ = {
    _DIGESTS: ArrayLayout(np.uint64, 2),  # of the distinct texts of each piece
    _CELLS: ArrayLayout(np.int64),  # which of them each text of each row is
    _WIDTHS: ArrayLayout(np.int32),  # texts of each row
    "labels": ArrayLayout(np.float32),
    "numbers": ArrayLayout(np.int64),
}
_TEXTS = {"texts": ArrayLayout(np.uint8), "text_ends": ArrayLayout(np.int64)}
_DIGEST_BYTES = 16
_ROWS = 1 << 16  # rows of a round over all of them


class _Cells(NamedTuple):
    """The texts of some rows: the distinct ones as they come first, which one each is, how many a row has."""

    texts: list[str]
    places: np.ndarray
    widths: np.ndarray


def read_into(folder: Path, stream: RowStream, where: str, show: Listener) -> list[int]:
    """Put what the rows of a stream are into a folder, as `ARRAYS`, or go on with it."""
    with write_errors(folder):
        (folder / WORK).mkdir(exist_ok=True)
    counts = _digest(folder, stream, show)

    def place(row: int) -> str:
        return stream.place(*place_of(row, counts, _there(folder, "numbers")))

    if sum(counts):
        check_width(_there(folder, _WIDTHS), place)
    known = _number(folder, show)
    if _keep_texts(folder, stream, show) != known:
        raise changed(where)
    return counts


def changed(where: str) -> DataError:
    """What is wrong with a source that two readings found different."""
    return DataError("its files changed while they were read; run it again", path=where)


def place_of(row: int, counts: Sequence[int], numbers: np.ndarray) -> tuple[int, int]:
    """The file that a row is from, and its number there, from 0."""
    before = 0
    for table, count in enumerate(counts):
        before += count
        if row < before:
            return table, int(numbers[row])
    raise IndexError(f"there is no row {row}")


def _digest(folder: Path, stream: RowStream, show: Listener) -> list[int]:
    """The first reading."""
    with GrowingArrays(folder, f"{WORK}/read", _READ) as grown:
        counts: list[int] = grown.note.get("counts", [0] * len(stream.tables))
        done: int = grown.note.get("stretches", 0)
        for number, stretch in enumerate(stream.stretches[done:], done + 1):
            for piece in stream.read(stretch):
                cells = _cells(piece)
                grown.add(_CELLS, grown.rows[_DIGESTS] + cells.places)
                grown.add(_DIGESTS, _digests(cells.texts))
                grown.add(_WIDTHS, cells.widths)
                grown.add("numbers", piece.numbers)
                if "label" in piece.rows.columns:
                    grown.add("labels", piece.rows["label"].cast(pl.Float32).to_numpy())
                counts[stretch.table] += piece.rows.height
                show(Progress("read rows", sum(counts), stream.rows))
            grown.keep(counts=counts, stretches=number)
    show(Progress("read rows", sum(counts), stream.rows, ended=True))
    return counts


def _number(folder: Path, show: Listener) -> int:
    """Between the readings: the number of each text, and rows of these numbers; how many texts there are."""
    widths, cells = _there(folder, _WIDTHS), _there(folder, _CELLS)
    width = max(
        (int(widths[start : start + _ROWS].max()) for start in range(0, len(widths), _ROWS)), default=0
    )
    with GrowingArrays(folder, f"{WORK}/numbered", {"rows": ArrayLayout(np.int64, width)}) as grown:
        if grown.note:
            return int(grown.note["known"])
        show(Progress("number texts"))
        known = number_texts(_there(folder, _DIGESTS), folder / f"{_TEXT_NUMBERS}.npy")
        texts, before = _there(folder, _TEXT_NUMBERS), 0
        for start in range(0, len(widths), _ROWS):
            own = np.asarray(widths[start : start + _ROWS])
            rows = np.full((len(own), width), ABSENT, np.int64)
            after = before + int(own.sum())
            rows[np.arange(width) < own[:, None]] = texts[cells[before:after]]
            grown.add("rows", rows)
            before = after
        grown.keep(known=known)
    show(Progress("number texts", ended=True))
    return known


def _keep_texts(folder: Path, stream: RowStream, show: Listener) -> int:
    """The second reading: the texts that are new, in the order of their numbers; how many these are."""
    numbers = _there(folder, _TEXT_NUMBERS)
    with GrowingArrays(folder, f"{WORK}/kept", _TEXTS) as grown:
        if not grown.note:
            grown.add("text_ends", np.zeros(1, np.int64))
        done, before, rows = (grown.note.get(name, 0) for name in ("stretches", "texts", "rows"))
        for number, stretch in enumerate(stream.stretches[done:], done + 1):
            for piece in stream.read(stretch):
                texts = _cells(piece).texts
                own = numbers[before : before + len(texts)]
                new = np.flatnonzero(own >= grown.rows["text_ends"] - 1).tolist()
                _add_texts(grown, [texts[place].encode() for place in new])
                before, rows = before + len(texts), rows + piece.rows.height
                show(Progress("keep texts", rows, stream.rows))
            grown.keep(stretches=number, texts=before, rows=rows)
        known = grown.rows["text_ends"] - 1
    show(Progress("keep texts", rows, stream.rows, ended=True))
    return known


def _add_texts(grown: GrowingArrays, texts: list[bytes]) -> None:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    grown.add("text_ends", grown.rows["texts"] + np.cumsum(lengths))
    grown.add("texts", np.frombuffer(b"".join(texts), np.uint8))


def _cells(piece: Piece) -> _Cells:
    texts = [name for name in piece.rows.columns if name != "label"]
    lists = piece.rows.select(pl.concat_list(texts).alias("cells"))["cells"]
    places: dict[str, int] = {}
    found = [places.setdefault(text, len(places)) for text in chain.from_iterable(lists.to_list())]
    return _Cells(list(places), np.array(found, np.int64), lists.list.len().to_numpy())


def _digests(texts: list[str]) -> np.ndarray:
    made = b"".join(hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest() for text in texts)
    return np.frombuffer(made, np.uint64).reshape(-1, 2)


def _there(folder: Path, array: str) -> np.ndarray:
    return mapped(folder / f"{array}.npy")


_LAYOUT = 2  # raise it when the same files and settings give other arrays
_ABOUT = "about.json"


class Streamed(NamedTuple):
    """Rows that are on disk."""

    examples: Examples
    place: Callable[[int], str]
    folder: Path
    size: int


def stream_examples(
    source: Source,
    *,
    split: str,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    show: Listener,
) -> Streamed:
    """The rows of a split, as `aoe_train.data.examples.read_examples` gives them but for conflicts.

    They are kept in `$AOE_CACHE/rows/<key>`, the key being a digest of what the files hold, of the columns
    and of what was said of labels. A killed run goes on with the next stretch of a file.
    """
    files = files_of_split(source, split)
    before = list(map(_stamp, files))

    def make(folder: Path) -> None:
        if not (folder / _ABOUT).is_file():
            stream = open_rows(source, columns=columns, split=split, rules=rules)
            counts = read_into(folder, stream, source_name(source), show)
            if not sum(counts):
                raise no_rows(stream.labels, source_name(source))
            if before != list(map(_stamp, files)):
                raise changed(source_name(source))
            write_json(folder / _ABOUT, _about(stream, counts))
        remove(folder / WORK)

    folder = cache_dir("rows") / _key(files, columns, rules, show)
    arrays = made_arrays(folder, ARRAYS, make)
    about = read_object(folder / _ABOUT)
    kind = cast("Kind", about["kind"])
    labels = about["labels"] and LabelsRead(**about["labels"])
    examples = Examples(
        MappedTexts(arrays["texts"], arrays["text_ends"]),
        arrays["rows"],
        arrays["labels"] if kind in ("binary", "graded") else None,
        kind,
        ReadingReport(labels, written=about["written"]),
    )

    def place(row: int) -> str:
        table, number = place_of(row, about["counts"], arrays["numbers"])
        return f"{files[table]}:{first_row(files[table]) + number}"

    return Streamed(examples, place, folder, sum(path.stat().st_size for path in folder.iterdir()))


def _about(stream: RowStream, counts: Sequence[int]) -> dict[str, object]:
    """What is known of the rows beside the arrays; `counts` are rows of each file."""
    return {
        "kind": kind_of(stream.names, binary=stream.binary),
        "labels": stream.labels and asdict(stream.labels),
        "counts": list(counts),
        "written": stream.written,
    }


def _key(files: Sequence[Path], columns: Mapping[str, str] | None, rules: LabelRules, show: Listener) -> str:
    """Hex SHA-256 of what decides the rows: what the files hold, in their order, and what was said of it."""
    held = []
    for number, path in enumerate(files):
        show(Progress("look at files", number, len(files)))
        try:
            held.append((path.suffix.lower(), sha256(path), class_names_of_file(path)))
        except OSError as error:
            raise DataError(f"not readable ({error.strerror}); fix its permissions", path=path) from error
    show(Progress("look at files", len(files), len(files), ended=True))
    said = [_LAYOUT, held, columns, rules.values, rules.scale]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file does."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
