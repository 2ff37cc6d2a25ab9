"""README, "Get started" and the tutorials do as they say: their blocks run, in order, from a clean folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.docs.blocks import ROOT, RUN, blocks_of, to_run
from tests.test_documentation import lay_out

FAST = {
    ("repositories.md", "python"),
    ("domain.md", "python"),
    ("python.md", "python"),
    ("review.md", "python"),
}  # twins of the others


def _cases() -> list[object]:
    return [
        pytest.param(
            page,
            language,
            id=f"{page.stem}-{language}",
            marks=[] if (page.name, language) in FAST else [pytest.mark.slow],
        )
        for page in RUN
        for language in ("sh", "python")
        if to_run(page, language)
    ]


@pytest.mark.parametrize(("page", "language"), _cases())
def test_a_page_does_as_it_says(page: Path, language: str, tmp_path: Path) -> None:
    text = "".join(f"# {page.name}:{block.line}\n{block.text}" for block in to_run(page, language))
    said = run(text.replace("8000", str(_free_port())), language, tmp_path)
    if language == "sh":
        shown = [line for block in to_run(page, "text") for line in block.text.splitlines()]
        lines = {" ".join(line.split()) for line in said.splitlines()}
        assert [line for line in shown if " ".join(line.split()) not in lines] == []


def test_training_does_as_it_says_with_a_tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "clean", "aoe_train")
    monkeypatch.chdir(tmp_path / "clean")
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    text = "".join(block.text for block in to_run(ROOT / "docs" / "tutorials" / "train.md", "python"))
    for there, here in (
        ("import gis_builder\n", ""),
        ('gis_builder.demo("issues").pairs', '"pairs.tsv"'),
        ('"minilm"', '"./model"'),
        ('"model"', '"trained"'),
        ("128", "32"),
    ):
        assert there in text
        text = text.replace(there, here)
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["vectors"].shape == (2, names["run"].encoder.dim)


def test_tuning_does_as_it_says_with_a_tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "clean", "aoe_train")
    monkeypatch.chdir(tmp_path / "clean")
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    text = "".join(block.text for block in to_run(ROOT / "docs" / "howto" / "tune.md", "python"))
    for there, here in (
        ("import gis_builder\n", ""),
        ('gis_builder.demo("issues").pairs', '"pairs.tsv"'),
        ('"minilm"', '"./model"'),
        ("epochs=epochs", "epochs=epochs, dev_data=pairs"),
        ("max_length=128", "max_length=32"),
        ("1e-5, 2e-4", "1e-5, 9e3"),
        ("n_trials=3", "n_trials=2"),
    ):
        assert there in text
        text = text.replace(there, here)
    names: dict[str, Any] = {}
    exec(text, names)
    exec(text, names)
    trials = names["study"].trials
    assert len(trials) == 4
    assert trials[0].params == {"lr": 5e-5, "epochs": 3}
    assert names["study"].best_value == trials[names["study"].best_trial.number].value


def test_searching_does_as_it_says_with_a_tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "clean", "aoe_train")
    monkeypatch.chdir(tmp_path / "clean")
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    text = "".join(block.text for block in to_run(ROOT / "docs" / "tutorials" / "search.md", "python"))
    for there, here in (('"minilm"', '"./model"'), ("8000", str(_free_port()))):
        assert there in text
        text = text.replace(there, here)
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["index"].search("E0417", by="words")[0].row["id"] == 5
    assert all(hit.row["state"] == "open" for hit in names["still_open"])
    assert len(names["found"]) == 2


def test_a_reranker_teaches_a_model_as_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "clean", "aoe_train")
    monkeypatch.chdir(tmp_path / "clean")
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    Path("gis").mkdir()
    pl.read_csv("pairs.tsv", separator="\t").head(8).write_parquet("gis/train.parquet")
    page = ROOT / "docs" / "howto" / "rerankers.md"
    (text,) = (block.text for block in blocks_of(page) if block.language == "python")
    for there, here in (
        ('"cross-encoder/ms-marco-MiniLM-L6-v2"', '"./model"'),
        ("num_train_epochs=1", "max_steps=2, use_cpu=True"),
        ('backbone="minilm", out="model"', 'backbone="./model", out="trained", epochs=1'),
        ('load_dataset("gis", ', 'load_dataset("gis", cache_dir="arrow", '),
    ):
        assert there in text
        text = text.replace(there, here)
    names: dict[str, Any] = {}
    exec(text, names)
    scored = pl.read_ndjson("scored.jsonl")
    assert scored.columns == ["text1", "text2", "label", "teacher_scores"]
    assert scored["teacher_scores"].is_between(0, 1).all()
    assert scored["teacher_scores"].to_list() == pytest.approx(names["scores"].tolist())
    assert (Path("trained") / "run.json").is_file()


def run(text: str, language: str, folder: Path) -> str:
    """Run blocks in `folder`, with the commands and the `data/` of this tree; what they print comes back."""
    home = folder / "clean"
    home.mkdir()
    (home / "data").symlink_to(ROOT / "data")
    if language == "python":
        command = [sys.executable, "-c", text]
    else:
        ends = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
        command = ["bash", "-c", f"set -euo pipefail\n{ends}\n{text}"]
    env = {
        **{name: value for name, value in os.environ.items() if name != "GITHUB_TOKEN"},
        "PATH": os.pathsep.join(
            (str(_scripts(folder)), str(Path(sys.executable).parent), os.environ["PATH"])
        ),
        "PYTHONPATH": str(ROOT),
        "AOE_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
    }
    ended = subprocess.run(
        command, cwd=home, env=env, capture_output=True, text=True, check=False, timeout=1800
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    return ended.stdout


def _scripts(folder: Path) -> Path:
    """The console scripts, installed or not."""
    place = folder / "bin"
    place.mkdir()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, entry in project["scripts"].items():
        script = place / name
        package = entry.partition(".")[0]
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {package} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return place


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
