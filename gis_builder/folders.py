"""The folders of a build: which it may replace, and which are its own to work in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.errors import ConfigError
from pairkit.files import write_errors
from pairkit.folders import check_name, held_folder

STORE_FILE = "store.sqlite"


def check_out(out: Path, repos: Sequence[str], settings: Mapping[str, Any], *, fresh: bool) -> None:
    """Refuse an output folder that holds what a build must not replace.

    A dataset of the same repositories and settings is not refused: it is what a build leaves that was killed
    in its last moments, or that is run once more, and what replaces it is the same or newer.

    Raises:
        ConfigError: says what is there and what to do.
    """
    check_name(out)
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


def _run_record(out: Path) -> dict[str, Any] | None:
    """The run.json of a dataset of ours; None for any other folder."""
    try:
        run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(run, dict) and str(run.get("made_by", "")).startswith("gis ")
    return run if is_ours else None
