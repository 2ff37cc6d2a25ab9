"""Imports, status and verdicts of randomly changed trackers in every layout."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from gis_builder.crawling.crawl import import_tracker
from gis_builder.crawling.status import read_status
from gis_builder.settings import DetectSettings
from gis_builder.store import Store
from pairkit import ConfigError, DataError

from .conftest import judge, write_world
from .crawl_fuzz import Changer
from .test_saved import gh_list, github_backup, paginated

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
        return _imported(root, folder / "store.sqlite")
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


def _imported(root: Path, path: Path) -> str:
    with Store.open(path, create=True) as store:
        try:
            rows = import_tracker(store, root, lambda words: _one_line(words))
        except (DataError, ConfigError) as error:
            _one_line(str(error))
            return type(error).__name__
    with Store.open(path) as store:
        read_status(store)
        store.content_hash()
        names = [row.full_name for row in rows if row.is_crawlable]
        list(judge(store, names, DetectSettings()))
        for name in names:
            list(store.threads(name, only_complete=False))
    return "ok"


def _one_line(words: str) -> None:
    assert "\n" not in words, words
