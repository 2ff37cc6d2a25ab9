"""The folders of a run: the dataset that it makes, the one beside it that it works in, and what made each."""

from __future__ import annotations

import fcntl
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.system.files import open_own, write_errors
from pairkit.system.lines import parse_json, read_whole

LOCK_FILE = "lock"
_MAX_JSON_BYTES = 64 << 20


def work_beside(out: Path) -> Path:
    """The working folder of a run that is given none: `OUT.work`."""
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
    """Refuse a place where no folder of ours can stand."""
    if out.name in ("", ".."):
        raise ConfigError(f"{out}: {what} needs a folder of its own; give it a name, such as {such_as}")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; choose another folder")


def check_only(out: Path, ours: Collection[str], what: str) -> None:
    """Refuse a folder that holds other files than `ours`: what replaces the folder would delete them."""
    found = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()}
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
    """The JSON object of a file beside a dataset, such as statistics.json."""
    text = read_whole(path, _MAX_JSON_BYTES, remedy="no record of ours is that large: fix the file")
    try:
        found = parse_json(text.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise DataError("not JSON (no UTF-8); fix the file", path=path) from error
    if not isinstance(found, dict):
        raise DataError("expected one JSON object; fix the file", path=path)
    return found


def made_there(out: Path, command: str, *tables: str) -> dict[str, Any] | None:
    """The run.json of our dataset that `out` would replace; None if `out` is free."""
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
    """Refuse a dataset that would stand where the working folder is: what it replaces is deleted."""
    home = work.resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(
            f"{out}: the dataset would replace the working folder {work}; choose another folder"
        )


@contextmanager
def held_folder(folder: Path, remedy: str) -> Iterator[None]:
    """Make the folder and hold it for this process alone; the lock ends with the process, however it ends."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with open_own(folder / LOCK_FILE) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"{folder}: {remedy}") from error
        yield


def differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between two of them, as lines to show."""
    old, new = dict(_flat(there)), dict(_flat(here))
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return [f"{one_line(key, 80)} ({_shown(old.get(key))} there, {_shown(new.get(key))} now)" for key in keys]


def _flat(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    waiting = [("", tree)]
    while waiting:
        above, values = waiting.pop()
        for key, value in values.items():
            if isinstance(value, Mapping):
                waiting.append((f"{above}{key}.", value))
            else:
                yield f"{above}{key}", list(value) if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    text = one_line(str(value))
    return text if len(text) <= 20 else text[:12] + "…"
