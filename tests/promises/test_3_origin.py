"""Promise 3: `run.json` records how a result was made, and each row its origin."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import aoe_train
import gis_builder
import llm_labeler
from llm_labeler.records import content_hash
from tests.aoe_train.tiny import save_bert, write_pairs
from tests.contract.conftest import SAMPLE

quiet: dict[str, Any] = {"progress": False}
TEXTS = [
    f"the {size} dog is near the {place}"
    for size in ("big", "small")
    for place in ("house", "river")
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two inputs of each package."""
    folder = tmp_path_factory.mktemp("origin")
    for number, trackers in enumerate((SAMPLE / "quarryhq", SAMPLE / "orrery3d")):
        gis_builder.import_tracker(trackers, folder / f"{number}.work", **quiet)
        gis_builder.detect(folder / f"{number}.work", **quiet)
        (folder / f"{number}.txt").write_text("\n".join(TEXTS[number:]))
        write_pairs(folder / f"{number}.tsv", 40 - number, seed=1)
    save_bert(folder / "bert", layers=1, dropout=0.0)
    return folder


@dataclass(frozen=True)
class Maker:
    """A command that writes a run.json."""

    make: Callable[..., Any]  # from the folder of the inputs and the number of one
    changed: Mapping[str, Any]  # settings other than the defaults
    content: tuple[str, ...]  # the files that the settings decide
    settings_at: tuple[str, ...]
    input_at: str

    def run(
        self,
        place: Path,
        out: Path,
        n: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> Any:
        """Make the result; returns its run.json."""
        self.make(
            place,
            n,
            out=out,
            settings=self.changed if settings is None else settings,
            **quiet,
        )
        return json.loads((out / "run.json").read_text())

    def files(self, out: Path) -> dict[str, bytes]:
        paths = [path for pattern in self.content for path in out.glob(pattern)]
        assert paths
        return {str(path.relative_to(out)): path.read_bytes() for path in paths}

    def settings(self, run: Any) -> dict[str, Any]:
        """The recorded settings by their names with dots."""
        for name in self.settings_at:
            run = run[name]
        return dict(flat(run))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", value


DATASET = ("data/*.parquet", "statistics.json")
MAKERS = {
    "gis": Maker(
        lambda place, n, **how: gis_builder.pair(place / f"{n}.work", **how),
        {"seed": 7, "pair.negatives": "hard", "pair.ratio": 0.5, "text.min_chars": 30},
        DATASET,
        ("settings",),
        "store_sha256",
    ),
    "label": Maker(
        lambda place, n, **how: llm_labeler.generate(
            place / f"{n}.txt", llm="wordnet", **how
        ),
        {"seed": 7, "size": 2, "filters.max_length_ratio": 2.0, "split.test": 0.25},
        DATASET,
        ("settings",),
        "input",
    ),
    "aoe": Maker(
        lambda place, n, **how: aoe_train.train(
            place / f"{n}.tsv", backbone=place / "bert", **how
        ),
        {"seed": 7, "optim.lr": 1e-3, "encoder.pooling": "avg", "optim.batch_size": 8},
        ("model.safetensors",),
        ("origin", "settings"),
        "files",
    ),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_the_recorded_settings_make_the_same_result_again(
    maker: Maker, place: Path, tmp_path: Path
) -> None:
    run = maker.run(place, tmp_path / "first")
    settings = maker.settings(run)
    assert maker.changed.items() <= settings.items()
    assert run["made_by"].rstrip(")").endswith(version("aoe-toolkit"))
    defaults = maker.settings(maker.run(place, tmp_path / "default", settings={}))
    assert maker.files(tmp_path / "default") != maker.files(tmp_path / "first")
    differences = {
        name: value for name, value in settings.items() if value != defaults.get(name)
    }
    assert (
        maker.settings(maker.run(place, tmp_path / "again", settings=differences))
        == settings
    )
    assert maker.files(tmp_path / "again") == maker.files(tmp_path / "first")


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_other_inputs_are_another_record(
    maker: Maker, place: Path, tmp_path: Path
) -> None:
    one, other = (maker.run(place, tmp_path / str(n), n) for n in (0, 1))
    assert one[maker.input_at] != other[maker.input_at]
    assert maker.settings(one) == maker.settings(other)


def test_the_hash_is_that_of_the_input_file(place: Path, tmp_path: Path) -> None:
    run = MAKERS["aoe"].run(place, tmp_path / "out")
    pairs = hashlib.sha256((place / "0.tsv").read_bytes()).hexdigest()
    assert run["files"]["data"] == {"0": {"0.tsv": pairs}}


def rows_of(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "data" / "*.parquet")


def test_rows_of_issues_name_both_issues_and_the_evidence(
    place: Path, tmp_path: Path
) -> None:
    gis_builder.pair(place / "0.work", tmp_path / "out", **quiet)
    gis_builder.render(place / "0.work", tmp_path / "issues.parquet", **quiet)
    issues = pl.read_parquet(tmp_path / "issues.parquet")
    texts = dict(issues.select("url", "text").iter_rows())
    rows = rows_of(tmp_path / "out")
    for row in rows.iter_rows(named=True):
        urls = [
            f"https://github.com/{row['repo']}/issues/{row[name]}"
            for name in ("number1", "number2")
        ]
        assert urls == [row["url1"], row["url2"]]
        assert [texts[url] for url in urls] == [row["text1"], row["text2"]]
        if row["label"]:
            assert row["evidence"]["url"].startswith("https://github.com/")
            assert row["relation"] == "duplicate"
        else:
            assert row["negative_kind"] == "random"


def test_rows_of_sentences_name_their_text_and_answers(
    place: Path, tmp_path: Path
) -> None:
    llm_labeler.generate(place / "0.txt", llm="wordnet", out=tmp_path / "out", **quiet)
    with closing(sqlite3.connect(tmp_path / "out.work" / "answers.sqlite")) as store:
        answers = {
            *store.execute("SELECT text_id, llm, task, prompt_hash FROM answers")
        }
    sources = {content_hash(text): text for text in TEXTS}
    rows = rows_of(tmp_path / "out")
    assert rows.height
    for row in rows.iter_rows(named=True):
        assert sources[row["text_id"]] == row["text1"]
        assert row["polarity"] == ("negative", "positive")[row["label"]]
        for llm, prompt in zip(row["llms"], row["prompt_hashes"], strict=True):
            assert (row["text_id"], llm, row["polarity"], prompt) in answers
