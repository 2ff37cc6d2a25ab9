"""The folders of a run: the model that it makes, and OUT.work, where it keeps what a killed run needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.system.files import remove, write_json
from pairkit.system.folders import LOCK_FILE, check_place, differing, held_folder, read_own

RUN_FILE = "run.json"
_MADE_BY = "aoe "


def work_beside(out: Path) -> Path:
    """The working folder of a run: `OUT.work`."""
    check_place(out, "a model", "model")
    if out.is_dir() and any(out.iterdir()) and read_run(out) is None:
        raise ConfigError(f"{out}: holds files that are no model of `aoe train`; choose another --out")
    return out.with_name(out.name + ".work")


@contextmanager
def working_folder(work: Path) -> Iterator[None]:
    """Hold a working folder for this process alone; the lock ends with the process, however it ends."""
    with held_folder(work, "another run works in it; wait for it or choose another --out"):
        try:
            yield
        finally:
            left = {path.name for path in work.glob("*")}
            if left and left <= {LOCK_FILE, RUN_FILE}:  # nothing to go on from
                shutil.rmtree(work)


def read_run(folder: Path) -> dict[str, Any] | None:
    """The run.json in a folder; None where there is none of ours."""
    run = read_own(folder / RUN_FILE)
    if run is None or not str(run.get("made_by", "")).startswith(_MADE_BY):
        return None
    return run if isinstance(run.get("origin"), dict) else None


def begin_or_go_on(out: Path, work: Path, origin: Mapping[str, Any], *, fresh: bool) -> dict[str, Any] | None:
    """Make the working folder fit for this run."""
    if fresh:
        clear(work)
    else:
        for place in (out, work):
            run = read_run(place)
            if run is not None and (differences := differing(run["origin"], origin)):
                raise ConfigError(
                    f"{place}: made by another run, which differs in {'; '.join(differences)}; give --fresh "
                    "to replace it, or another --out"
                )
            if run is not None and "diverged" in run:  # it would do so again
                raise ConfigError(f"{place}: {one_line(str(run['diverged']), 4096)}")
        if finished := read_run(out):
            return finished
    write_json(work / RUN_FILE, {"made_by": _MADE_BY + "train", "origin": origin})
    return None


def mark_diverged(work: Path, origin: Mapping[str, Any], message: str) -> None:
    """Note in the working folder that this run came to nothing, so that it isn't gone on with."""
    write_json(work / RUN_FILE, {"made_by": _MADE_BY + "train", "origin": origin, "diverged": message})


def clear(work: Path) -> None:
    """Take everything out of a working folder but its lock."""
    for path in work.iterdir():
        if path.is_dir():
            remove(path)
    (work / RUN_FILE).unlink(missing_ok=True)
