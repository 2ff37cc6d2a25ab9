"""Promise 4: the same content gives the same verdicts and rows, whatever its source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from datasets import Dataset

from tests.contract.conftest import (
    SAMPLE,
)
from tests.contract.label_command import tree
from tests.gis_builder.archive_world import (
    HOURS,
    build,
    tables,
    world,
    write_hours,
)
from tests.gis_builder.test_detect_probe import HOME, crawled, imported, write_probe
from tests.llm_labeler.test_api import TEXTS
from tests.llm_labeler.test_api import generate as generate_from
from tests.support.github import serve


@pytest.fixture(scope="module", params=["sample", "probe"])
def tracker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("tracker")
    if request.param == "probe":
        return write_probe(root / "probe")
    ignored = shutil.ignore_patterns("inkwell-notes", "orrery3d", "tidepool-ui")
    return Path(shutil.copytree(SAMPLE, root / "sample", ignore=ignored))


def names(folder: Path) -> str:
    return ",".join(
        sorted(
            str(path.parent.relative_to(folder))
            for path in folder.glob("*/*/repo.json")
        )
    )


def test_import_and_crawls_give_the_same_verdicts(
    tracker: Path, tmp_path: Path
) -> None:
    base = imported(tracker, tmp_path / "import")
    with serve(tracker) as server:
        for strategy in ("all", "search"):
            verdicts = crawled(
                server.url,
                names(tracker),
                tmp_path / strategy,
                "--strategy",
                strategy,
                "--update",
            )
            assert verdicts == {key: base[key] for key in verdicts}
            assert strategy == "search" or verdicts == base


def test_an_update_gives_the_same_verdicts(tmp_path: Path) -> None:
    """The first crawl precedes most threads."""
    whole, early = write_probe(tmp_path / "whole"), write_probe(tmp_path / "early")
    issues = early / HOME / "issues.jsonl"
    issues.write_text("".join(issues.read_text().splitlines(keepends=True)[:4]))
    for strategy in ("all", "search"):
        work = tmp_path / strategy
        with serve(early) as server:
            before = crawled(server.url, HOME, work, "--strategy", strategy)
        with serve(whole) as server:
            updated = crawled(
                server.url, HOME, work, "--strategy", strategy, "--update"
            )
            fresh = crawled(
                server.url, HOME, tmp_path / f"{strategy}-fresh", "--strategy", strategy
            )
        assert updated == {key: fresh.get(key, updated[key]) for key in updated}
        assert updated.keys() >= fresh.keys()
        assert len(updated) > len(before)


def test_the_order_of_archived_events_does_not_change_pairs(
    built: Any, threads: Any, tmp_path: Path
) -> None:
    lines = world(threads)
    shuffled = sorted(lines, key=lambda line: line[::-1])
    write_hours(tmp_path / "hours", [*shuffled, *lines[::7]], HOURS[::2])
    assert tables(build(tmp_path / "hours", tmp_path / "gis").out) == tables(built.out)


@pytest.mark.parametrize(
    "source",
    [
        TEXTS,
        tuple(TEXTS),
        [{"text": text} for text in TEXTS],
        pl.DataFrame({"id": [1, 2, 3], "sentence": TEXTS}),
        pd.DataFrame({"text": TEXTS}),
        Dataset.from_dict({"text": TEXTS}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_sentences_in_memory_give_the_dataset_of_a_file(
    source: Any, tmp_path: Path
) -> None:
    file = tmp_path / "s.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    from_file = generate_from(str(file), tmp_path / "a" / "out")
    in_memory = generate_from(source, tmp_path / "b" / "out")
    assert in_memory.positives == in_memory.negatives == 6
    files = tree(from_file.out), tree(in_memory.out)
    runs = [json.loads(folder.pop("run.json")) for folder in files]
    assert files[0] == files[1]
    assert runs[0]["input"]["sha256"] == runs[1]["input"]["sha256"]
    assert runs[1]["input"]["name"] == f"in memory, {runs[1]['input']['sha256'][:16]}"
