"""Maps over files: tasks that write files, and the names of these files.

The files of a task are complete or absent, and their names have a hash of everything that determines their
content. So a task is done if its files exist: interrupted runs continue, and tasks can run on any machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pairkit.base.system.files import write_bytes

_DIGITS = 20
_NAME = re.compile(r"[0-9a-z-]+\.[0-9a-f]{20}\.[0-9a-f]{20}\.[a-z]+")
_PATTERNS = ("hours/*", "rows-*/*/*", "judged/*", "near-duplicates/*", "draw-inputs/*", "negatives/*")
_BASE_BYTES = 512 << 20  # memory of a worker: interpreter, libraries, an hour's rows
_MEMORY_PER_BYTE = 12  # bytes of memory per byte of a task's input


class FileTask(NamedTuple):
    """A function that yields the content of each file in `outs`."""

    outs: tuple[Path, ...]
    function: Callable[..., Iterable[bytes]]
    arguments: tuple[Any, ...]
    memory: int = _BASE_BYTES  # estimated maximum, in bytes


def is_done(task: FileTask) -> bool:
    """Whether all files of a task exist."""
    return all(out.exists() for out in task.outs)


def do(task: FileTask) -> None:
    """Run a task if it is not done; its files are private, because they contain other people's texts."""
    if not is_done(task):
        for out, data in zip(task.outs, task.function(*task.arguments), strict=True):
            write_bytes(out, data, private=True)


def memory_for(paths: Iterable[Path], parts: int = 1) -> int:
    """The memory of a task that unpacks files, or one of `parts` equal parts of them."""
    return _BASE_BYTES + _MEMORY_PER_BYTE * sum(path.stat().st_size for path in paths) // parts


def file_named(folder: Path, stem: str, ending: str, code: object, *inputs: object) -> Path:
    """The path of a task's file: `STEM.CODE.INPUTS.ENDING`, with hashes of code and inputs."""
    return folder / f"{stem}.{digest_of(code)[:_DIGITS]}.{digest_of(inputs)[:_DIGITS]}.{ending}"


def superseded(work: Path, used: Collection[Path]) -> Iterator[Path]:
    """The files of tasks that are not used, but for rows of other hours."""
    stems = {path.name.partition(".")[0] for path in used}
    for path in (path for pattern in _PATTERNS for path in work.glob(pattern)):
        is_other = path.parent.name == "hours" and path.name.partition(".")[0] not in stems
        if path not in used and not is_other and _NAME.fullmatch(path.name):
            yield path


def digest_of(value: object) -> str:
    """The hexadecimal SHA-256 of bytes or of a JSON value."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()
