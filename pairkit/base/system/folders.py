"""Output and working folders of runs: default places, checks before replacing, locks, differences."""

from __future__ import annotations

import fcntl
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import open_in_place, write_errors
from pairkit.base.system.text_lines import parse_json, read_text

LOCK_FILE = "lock"
REPLACE = "give --fresh to replace it, or another --out"
_MAX_JSON_BYTES = 64 << 20
_MAX_SHOWN = 5  # differences


def work_beside(out: Path) -> Path:
    """The default working folder, `OUT.work`; raises ConfigError if `out` can't be an output folder."""
    check_place(out)
    return out.with_name(out.name + ".work")


def path_beside(source: str, ending: str) -> Path:
    """The default output for a source: `SOURCE.ending` beside it, or in the current folder for a Hub id."""
    path = Path(source)
    if path.exists():
        path = path.resolve()
        return path.with_name(f"{path.name}.{ending}")
    return Path(f"{source.rpartition('/')[2].replace(':', '-')}.{ending}")


def base_name(source: str) -> str:
    """The name of the source's file or folder, or the source itself, such as a Hub id."""
    path = Path(source)
    return path.resolve().name if path.exists() else source


def check_place(out: Path, what: str = "a dataset", such_as: str = "pairs") -> None:
    """Refuse paths that can't be an output folder."""
    if out.name in ("", ".."):
        raise ConfigError(
            f"{out}: {what} needs a folder of its own; give it a name, such as {such_as}"
        )
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; choose another folder")


def check_no_other_files(out: Path, expected: Collection[str], what: str) -> None:
    """Refuse to replace a folder that has files besides the `expected` ones of `what`."""
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if not path.is_dir() and name not in expected:
            raise ConfigError(
                f"{out}: has {one_line(name)}, which isn't part of {what} and would be deleted;"
                " choose another folder"
            )


def try_read_json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, or None if it is missing or damaged."""
    try:
        return read_json_object(path)
    except DataError:
        return None


def read_json_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file; raises DataError if there is none."""
    value = parse_json(
        read_text(path, _MAX_JSON_BYTES, remedy="expected a smaller file"), path
    )
    if not isinstance(value, dict):
        raise DataError("expected one JSON object; fix the file", path=path)
    return value


def existing_run(out: Path, command: str, *required: str) -> dict[str, Any] | None:
    """Read the run.json of the dataset that `command` wrote to `out`; None if `out` is missing or empty.

    A missing parent of `out` is created, so that a path that can't be written fails before the work. Raises
    ConfigError if `out` has files of anything else, or a run.json without the `required` objects.
    """
    check_place(out)
    if not out.exists():
        with write_errors(out):
            out.parent.mkdir(parents=True, exist_ok=True)
        return None
    if not any(out.iterdir()):
        return None
    run = try_read_json_object(out / "run.json")
    is_ours = (
        run is not None
        and str(run.get("made_by", "")).startswith(f"{command} ")
        and all(isinstance(run.get(name), dict | list) for name in required)
    )
    if not is_ours:
        raise ConfigError(
            f"{out}: has files, but not a dataset of `{command}`; choose another folder"
        )
    shards = (path.relative_to(out).as_posix() for path in out.glob("*/*-of-*.parquet"))
    check_no_other_files(
        out,
        {"README.md", "run.json", "statistics.json", *shards},
        f"a dataset of `{command}`",
    )
    return run


def check_apart(out: Path, work: Path) -> None:
    """Refuse an output folder that contains the working folder, which would be deleted."""
    home = work.resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(
            f"{out}: the dataset would replace the working folder {work}; choose another folder"
        )


@contextmanager
def try_lock_folder(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Create the folder and lock it until the block or the process ends.

    Yields False if another process has locked it; with `wait`, waits for that process instead.
    """
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with open_in_place(folder / LOCK_FILE) as lock:
        is_ours = True
        with write_errors(folder):
            try:
                fcntl.flock(
                    lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
                )
            except BlockingIOError:
                is_ours = False
        yield is_ours


@contextmanager
def lock_folder(folder: Path, remedy: str) -> Iterator[None]:
    """Create and lock the folder; raises ConfigError with the remedy if another process has locked it."""
    with try_lock_folder(folder) as is_ours:
        if not is_ours:
            raise ConfigError(f"{folder}: {remedy}")
        yield


def check_same_run(
    out: Path,
    saved: Mapping[str, object],
    current: Mapping[str, object],
    keys: Collection[str] = (),
) -> None:
    """Refuse to replace or continue a result in `out` with other values of `keys`, or of any key."""
    if keys:
        saved = {key: saved.get(key) for key in keys}
        current = {key: current.get(key) for key in keys}
    if differences := differing(saved, current):
        raise ConfigError(
            f"{out}: made from other inputs or with other settings: {'; '.join(differences[:_MAX_SHOWN])};"
            f" {REPLACE}"
        )


def check_file(path: Path, data: bytes, *, fresh: bool) -> None:
    """Refuse to replace a file with other content, unless `fresh`."""
    if not path.exists():
        return
    may_replace = path.is_file() and (fresh or path.read_bytes() == data)
    if not may_replace:
        raise ConfigError(f"{path}: already exists with other content; {REPLACE}")


def differing(saved: Mapping[str, object], current: Mapping[str, object]) -> list[str]:
    """The differences between two mappings, as lines."""
    old = dict(_flat(saved))
    new = dict(_flat(current))
    differences = []
    for key in sorted(old.keys() | new.keys()):
        saved_value = old.get(key)
        value = new.get(key)
        if saved_value != value:
            values = f"{_shown(saved_value)} there, {_shown(value)} now"
            differences.append(f"{one_line(key, 80)} ({values})")
    return differences


def _flat(tree: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The leaves of nested mappings, with dotted keys; lists of mappings are numbered from 1."""
    waiting = [("", tree)]
    while waiting:
        prefix, values = waiting.pop()
        for key, value in values.items():
            if isinstance(value, list) and all(
                isinstance(item, Mapping) for item in value
            ):
                value = dict(enumerate(value, 1))
            if isinstance(value, Mapping):
                waiting.append((f"{prefix}{key}.", value))
            else:
                yield (
                    f"{prefix}{key}",
                    list(value) if isinstance(value, tuple) else value,
                )


def _shown(value: object) -> str:
    return "unset" if value is None else one_line(str(value), 20)
