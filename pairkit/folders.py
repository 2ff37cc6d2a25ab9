"""The folders of a run: the dataset that it makes, and the one beside it that it works in."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.errors import ConfigError, DataError
from pairkit.files import open_own, write_errors
from pairkit.lines import parse_json, read_whole
from pairkit.printable import one_line

LOCK_FILE = "lock"
_MAX_JSON_BYTES = 64 << 20


def work_beside(out: Path) -> Path:
    """The working folder of a run that is given none: `OUT.work`.

    Raises:
        ConfigError: `out` has no name of its own, or is a file.
    """
    check_place(out)
    return out.with_name(out.name + ".work")


def beside(source: str, ending: str) -> Path:
    """Where what is made of a source goes by itself: `SOURCE.ending`, and right here for one of the Hub."""
    path = Path(source)
    if path.exists():
        path = path.resolve()
        return path.with_name(f"{path.name}.{ending}")
    return Path(f"{source.rpartition('/')[2].replace(':', '-')}.{ending}")


def own_name(source: str) -> str:
    """What a source is called: the name of the file or folder that is there, else as it was given."""
    path = Path(source)
    return path.resolve().name if path.exists() else source


def check_place(out: Path, what: str = "a dataset", such_as: str = "pairs") -> None:
    """Refuse a place where no folder of ours can stand.

    Args:
        out: The folder to be.
        what: It will be, such as "a report".
        such_as: A good name for it.

    Raises:
        ConfigError: `out` has no name of its own, or is a file.
    """
    if out.name in ("", ".."):
        raise ConfigError(f"{out}: {what} needs a folder of its own; give it a name, such as {such_as}")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; choose another folder")


def check_only(out: Path, ours: Collection[str], what: str) -> None:
    """Refuse a folder that holds other files than `ours`: what replaces the folder would delete them.

    Args:
        out: The folder, which may be absent.
        ours: The files that may go, as paths below the folder, such as "data/test.parquet".
        what: They are part of, such as "a report".

    Raises:
        ConfigError: names the first of the others.
    """
    for home, folders, files in os.walk(out):
        folders.sort()
        links = (name for name in folders if Path(home, name).is_symlink())
        found = {Path(home, name).relative_to(out).as_posix() for name in (*files, *links)}
        if others := sorted(found.difference(ours)):
            raise ConfigError(
                f"{out}: holds {one_line(others[0])}, which is no part of {what} and would be lost;"
                " choose another folder"
            )


def read_own(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file that a run of ours may have written; None where no object can be read."""
    try:
        return read_object(path)
    except DataError:
        return None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file beside a dataset, such as statistics.json.

    Raises:
        DataError: No such file, not readable, too large, or another kind of value.
    """
    text = read_whole(path, _MAX_JSON_BYTES, remedy="no record of ours is that large: fix the file")
    try:
        found = parse_json(text.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise DataError("not JSON (no UTF-8); fix the file", path=path) from error
    if not isinstance(found, dict):
        raise DataError("expected one JSON object; fix the file", path=path)
    return found


def made_there(out: Path, command: str, *tables: str) -> dict[str, Any] | None:
    """The run.json of the dataset of ours that would be replaced at `out`; None where nothing is in the way.

    Args:
        out: The folder; those above it are made.
        command: Whose dataset it may be: `gis`, `label`.
        tables: Keys under which every run.json of that command has a table.

    Raises:
        ConfigError: `out` has no name of its own, can't be made, is a file, or holds something else, be it
            beside a dataset.
    """
    check_place(out)
    if not out.exists():
        with write_errors(out):
            out.parent.mkdir(parents=True, exist_ok=True)
        return None
    if not any(out.iterdir()):
        return None
    run = read_own(out / "run.json")
    is_ours = (
        run is not None
        and str(run.get("made_by", "")).startswith(f"{command} ")
        and all(isinstance(run.get(name), dict) for name in tables)
    )
    if not is_ours:
        raise ConfigError(f"{out}: holds files that are no dataset of `{command}`; choose another folder")
    shards = (path.relative_to(out).as_posix() for path in out.glob("*/*-of-*.parquet"))
    check_only(out, {"README.md", "run.json", "statistics.json", *shards}, f"a dataset of `{command}`")
    return run


def check_apart(out: Path, work: Path) -> None:
    """Refuse a dataset that would stand where the working folder is: what it replaces is deleted.

    Raises:
        ConfigError: `out` is or holds `work`.
    """
    home = work.resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(
            f"{out}: the dataset would replace the working folder {work}; choose another folder"
        )


@contextmanager
def held_folder(folder: Path, remedy: str) -> Iterator[None]:
    """Make the folder and hold it for this process alone; the lock ends with the process, however it ends.

    Args:
        folder: The working folder.
        remedy: Who else may be there and what to do: "another gis process works in it; wait for it".

    Raises:
        ConfigError: the folder can't be written, or another process holds it.
    """
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with open_own(folder / LOCK_FILE) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"{folder}: {remedy}") from error
        yield
