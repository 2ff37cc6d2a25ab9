"""Imports, status and verdicts of randomly changed trackers in every layout."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import gis_builder
from pairkit import ConfigError, DataError

from .conftest import write_world
from .crawl_fuzz import Changer
from .test_saved import gh_list, github_backup, paginated
from .working_folder import contents, imported

LAYOUTS: tuple[Callable[[Path], object], ...] = (write_world, paginated, gh_list, github_backup)


def fuzz_import(folder: Path, seed: int) -> str:
    """Import a changed tracker and read it; returns `ok` or the name of the error."""
    draw = random.Random(seed)
    root = folder / "saved"
    root.mkdir()
    draw.choice(LAYOUTS)(root)
    changer = Changer(draw)
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".gz")
    for path in draw.sample(files, min(len(files), draw.choice((1, 1, 2, 3)))):
        _spoil(path, changer, draw)
    try:
        return _imported(root, folder / "work")
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}") from error
    finally:
        shutil.rmtree(root)


def _spoil(path: Path, changer: Changer, draw: random.Random) -> None:
    """Change a line, a value or bytes of a file."""
    lines = path.read_bytes().split(b"\n") if path.suffix == ".jsonl" else [path.read_bytes()]
    place = draw.randrange(len(lines))
    *_, lines[place] = changer.change(200, {}, lines[place])
    path.write_bytes(b"\n".join(lines))


def _imported(root: Path, work: Path) -> str:
    try:
        imported(root, work)
    except (DataError, ConfigError) as error:
        if "\n" in str(error):
            raise AssertionError(f"more than a line: {error}") from error
        return type(error).__name__
    assert not [text for _, text in gis_builder.status(work).warnings if "\n" in text]
    gis_builder.detect(work, progress=False)
    contents(work)
    return "ok"
