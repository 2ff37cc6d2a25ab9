"""The folders of a build: which it may replace, which are its own to work in, and the sample tracker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gis_builder.store import Store
from pairkit.app.errors import ConfigError
from pairkit.system.folders import held_folder, made_there

_STORE_FILE = "store.sqlite"
_PACKAGE = Path(__file__).resolve().parents[1]
_SAMPLES = (_PACKAGE / "data" / "sample", _PACKAGE.parent / "data" / "sample")


def check_out(out: Path, repos: Sequence[str], settings: Mapping[str, Any], *, fresh: bool) -> None:
    """Refuse an output folder that holds what a build must not replace.

    A dataset of the same repositories and settings is not refused: it is what a build leaves that was killed
    in its last moments, or that is run once more, and what replaces it is the same or newer.
    """
    run = made_there(out, "gis")
    if run is None:
        return
    same = run.get("settings") == settings and set(run.get("repositories", ())) == set(repos)
    if not same and not fresh:
        raise ConfigError(
            f"{out}: holds a dataset made with other settings or repositories; give --fresh to replace it "
            "(fresh=True), or another folder"
        )


@contextmanager
def working_folder(work: Path, *, create: bool = True) -> Iterator[None]:
    """Hold a working folder for this process alone; the lock ends with the process, however it ends."""
    if not create and not work.is_dir():
        raise ConfigError(
            f"{work}: no such working folder; run the crawl first or choose another working folder"
        )
    with held_folder(work, "another gis process works in it; wait for it or choose another working folder"):
        yield


@contextmanager
def held_store(work: Path, *, create: bool = True) -> Iterator[Store]:
    """The store of a working folder, which is this process's alone meanwhile."""
    with working_folder(work, create=create), Store.open(work / _STORE_FILE, create=create) as store:
        yield store


def open_store(work: Path) -> Store:
    """The store of a working folder, to be read; another process may be writing to it."""
    return Store.open(work / _STORE_FILE)


def sample_folder() -> Path:
    """The sample tracker: beside the package in a source tree, inside it once installed."""
    for place in _SAMPLES:
        if place.is_dir():
            return place
    raise ConfigError("the sample tracker is not part of this installation; reinstall aoe-toolkit")
