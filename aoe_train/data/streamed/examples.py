"""The rows of a split on disk, found there or put there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, cast

from aoe_train.data.streamed.reading import ARRAYS, WORK, changed, place_of, read_into
from aoe_train.model.cache_dir import cache_dir
from aoe_train.model.tokens.grown_arrays import made_arrays
from aoe_train.model.tokens.texts_on_disk import TextsOnDisk
from aoe_train.records import Examples, Kind, Reading, kind_of, no_rows
from pairkit.app.errors import DataError
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import LabelRules, LabelsRead
from pairkit.dataset.row_stream import RowStream, files_of_split, open_rows
from pairkit.dataset.tables import class_names_of_file, first_row
from pairkit.system.files import remove, sha256, write_json
from pairkit.system.folders import read_object

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
        TextsOnDisk(arrays["texts"], arrays["text_ends"]),
        arrays["rows"],
        arrays["labels"] if kind in ("binary", "graded") else None,
        kind,
        Reading(labels, written=about["written"]),
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
