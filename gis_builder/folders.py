"""The folders of a build: which it may replace, and which are its own to work in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.errors import ConfigError
from pairkit.files import write_errors
from pairkit.folders import held_folder

STORE_FILE = "store.sqlite"


def work_beside(out: Path) -> Path:
    """The working folder of a build that is given none: `OUT.work`.

    Raises:
        ConfigError: `out` has no name of its own.
    """
    _check_name(out)
    return out.with_name(out.name + ".work")


def check_apart(out: Path, work: Path) -> None:
    """Refuse a dataset that would stand where the working folder is: what it replaces is deleted.

    Raises:
        ConfigError: `out` is or holds `work`.
    """
    home = work.resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(f"{out}: the dataset would replace the working folder {work}; choose another --out")


def check_out(out: Path, repos: Sequence[str], settings: Mapping[str, Any], *, fresh: bool) -> None:
    """Refuse an output folder that holds what a build must not replace.

    A dataset of the same repositories and settings is not refused: it is what a build leaves that was killed
    in its last moments, or that is run once more, and what replaces it is the same or newer.

    Raises:
        ConfigError: says what is there and what to do.
    """
    _check_name(out)
    if not out.exists():
        with write_errors(out):
            out.parent.mkdir(parents=True, exist_ok=True)
        return
    if not out.is_dir():
        raise ConfigError(f"{out}: is a file; choose another --out")
    if not any(out.iterdir()):
        return
    run = _run_record(out)
    if run is None:
        raise ConfigError(f"{out}: holds files that are no dataset of `gis`; choose another --out")
    same = run.get("settings") == settings and set(run.get("repositories", ())) == set(repos)
    if not same and not fresh:
        raise ConfigError(
            f"{out}: holds a dataset made with other settings or repositories; give --fresh to replace it, "
            "or another --out"
        )


@contextmanager
def working_folder(work: Path, *, create: bool = True) -> Iterator[None]:
    """Hold a working folder for this process alone; the lock ends with the process, however it ends.

    Raises:
        ConfigError: the folder can't be written, another process works in it, or it is not there and not to
            be made.
    """
    if not create and not work.is_dir():
        raise ConfigError(f"{work}: no such working folder; run the crawl first or choose another --work")
    with held_folder(work, "another gis process works in it; wait for it or choose another --work"):
        yield


def _check_name(out: Path) -> None:
    if out.name in ("", ".."):
        raise ConfigError(f"{out}: a dataset needs a folder of its own; give --out a name, such as gis")


def _run_record(out: Path) -> dict[str, Any] | None:
    """The run.json of a dataset of ours; None for any other folder."""
    try:
        run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(run, dict) and str(run.get("made_by", "")).startswith("gis ")
    return run if is_ours else None
