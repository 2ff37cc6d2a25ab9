"""The code blocks of README, "Get started" and the tutorials run in order and print the output shown."""

import contextlib
import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest

import aoe_train
from tests.docs.blocks import ROOT, RUN, blocks_of, shown, to_run, without_figures
from tests.forked import free_port
from tests.support.shorthand import approx, parametrize
from tests.test_documentation import lay_out

# Pages whose Python runs in the fast suite.
FAST = {
    "repositories.md",
    "domain.md",
    "python.md",
    "review.md",
    "tickets.md",
}


def _cases():
    return [
        pytest.param(
            page,
            language,
            id=f"{page.stem}-{language}",
            marks=[]
            if language == "python" and page.name in FAST
            else [pytest.mark.slow],
        )
        for page in RUN
        for language in ("sh", "python")
        if to_run(page, language)
    ]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A clean current folder with the `data/` of this tree."""
    folder = tmp_path / "clean"
    folder.mkdir()
    (folder / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    return folder


@parametrize("page, language", _cases())
def test_blocks_run_and_print_the_output_shown(page, language, home):
    text = "".join(
        f"# {page.name}:{block.line}\n{block.text}" for block in to_run(page, language)
    )
    text = text.replace("8000", str(free_port())).replace(
        "intfloat/multilingual-e5-small", "minilm"
    )
    if language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(text, {"__name__": "__main__"})
        output = printed.getvalue()
    else:
        output = in_shell(text, home.parent / "bin")
    lines = {" ".join(line.split()) for line in output.splitlines()}
    lines |= {without_figures(line) for line in lines}
    assert [line for line in shown(page, language) if line not in lines] == []


def test_every_output_shown_is_checked():
    for page in RUN:
        written = [
            line for block in to_run(page, "text") for line in block.text.splitlines()
        ]
        languages = [
            language for language in ("sh", "python") if to_run(page, language)
        ]
        assert sum(len(shown(page, language)) for language in languages) == len(
            written
        ), page


def with_a_tiny_model(page, home, changes, times=1):
    """Runs the Python of a page with a tiny model and few pairs, and returns the variables."""
    tiny = home.with_name("tiny")
    lay_out(tiny, "aoe_train")
    (tiny / "data").symlink_to(ROOT / "data")
    os.chdir(tiny)  # the fixture changes back
    text = "".join(block.text for block in to_run(ROOT / "docs" / page, "python"))
    for old, new in {'"minilm"': '"./model"', **changes}.items():
        assert old in text
        text = text.replace(old, new)
    names = {}
    for _ in range(times):
        exec(text, names)
    return names


NO_DEMO = {
    "import gis_builder\n": "",
    'gis_builder.demo("issues").pairs': '"pairs.tsv"',
}


def test_training_tutorial_runs_with_a_tiny_model(home):
    changes = {**NO_DEMO, '"model"': '"trained"', "128": "32"}
    names = with_a_tiny_model("tutorials/train.md", home, changes)
    assert names["vectors"].shape == (2, names["run"].encoder.dim)


@pytest.mark.slow
def test_topics_by_bertopic(home):
    pytest.importorskip("bertopic")
    indexing, topics, *_ = (
        block
        for block in blocks_of(ROOT / "docs" / "howto" / "groups.md")
        if block.language == "python"
    )
    names = {}
    exec(indexing.text + topics.text, names)
    assert len(names["numbers"]) == len(names["index"])
    assert Path("map.html").stat().st_size


@pytest.mark.slow
@parametrize("page", ["search.md", "small-vectors.md"])
def test_commands_of_a_howto_run(page, home):
    rows = [
        "text1\ttext2\tlabel",
        *(f"The cat has {n} mice.\tA cat saw {n} mice.\t{n % 6}" for n in range(24)),
    ]
    Path("stsb-train.tsv").write_text("\n".join(rows))
    for name in ("texts.txt", "questions.txt"):
        Path(name).write_text("\n".join(rows[1:]).replace("\t", " "))
    text = "".join(block.text for block in to_run(ROOT / "docs" / "howto" / page, "sh"))
    if page == "search.md":
        text = (
            "gis import data/sample --work gis.work\ngis render --work gis.work --out issues.parquet\n"
            + text
        )
        text = text.replace("rust-lang/rust", "quarryhq/quarry").replace(
            "new-index", "index"
        )
    in_shell(text, home.parent / "bin")


def test_tuning_example_runs_with_a_tiny_model(home):
    changes = {
        **NO_DEMO,
        "epochs=epochs": "epochs=epochs, dev_data=pairs",
        "max_length=128": "max_length=32",
        "1e-5, 2e-4": "1e-5, 9e3",
        "n_trials=3": "n_trials=2",
    }
    study = with_a_tiny_model("howto/objectives.md", home, changes, times=2)["study"]
    assert len(study.trials) == 4
    assert study.trials[0].params == {"lr": 5e-5, "epochs": 3}
    assert study.best_value == study.trials[study.best_trial.number].value


def test_search_tutorial_runs_with_a_tiny_model(home):
    names = with_a_tiny_model("tutorials/search.md", home, {"8000": str(free_port())})
    assert names["index"].search("E0417", by="words")[0].row["id"] == 5
    assert all(hit.row["state"] == "open" for hit in names["still_open"])
    assert len(names["hits"]) == 2


@parametrize("package", ["langchain_core", "llama_index.core", "qdrant_client"])
def test_documents_reach_libraries_for_rag(package, home):
    pytest.importorskip(package)
    lay_out(home / "tiny", "aoe_train")
    os.chdir(home / "tiny")
    howto = ROOT / "docs" / "howto"
    aoe_train.index(
        howto, model="./model", out="handbook", link="https://example.org/{page}"
    )
    (text,) = (
        block.text
        for block in to_run(howto / "rag.md", "python")
        if f"from {package}" in block.text
    )
    names = {}
    exec(text.replace('"minilm"', '"./model"'), names)
    assert len(names["sources"]) == 4
    assert all(source.startswith("https://example.org/") for source in names["sources"])


def test_reranker_example_trains_a_model(tmp_path, monkeypatch):
    lay_out(tmp_path / "clean", "aoe_train")
    monkeypatch.chdir(tmp_path / "clean")
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    Path("gis").mkdir()
    pl.read_csv("pairs.tsv", separator="\t").head(8).write_parquet("gis/train.parquet")
    page = ROOT / "docs" / "howto" / "teachers.md"
    (text,) = (block.text for block in blocks_of(page) if block.language == "python")
    for old, new in (
        ('"cross-encoder/ms-marco-MiniLM-L6-v2"', '"./model"'),
        ("num_train_epochs=1", "max_steps=2, use_cpu=True"),
        (
            'backbone="minilm", out="model"',
            'backbone="./model", out="trained", epochs=1',
        ),
        ('load_dataset("gis", ', 'load_dataset("gis", cache_dir="arrow", '),
    ):
        assert old in text
        text = text.replace(old, new)
    names = {}
    exec(text, names)
    scored = pl.read_ndjson("scored.jsonl")
    assert scored.columns == ["text1", "text2", "label", "teacher_scores"]
    assert scored["teacher_scores"].is_between(0, 1).all()
    assert scored["teacher_scores"].to_list() == approx(names["scores"].tolist())
    assert (Path("trained") / "run.json").is_file()


def in_shell(text, scripts):
    """Runs text in a shell that has the commands of this tree, and returns its output."""
    ends = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
    command = ["bash", "-c", f"set -euo pipefail\n{ends}\n{text}"]
    path = os.pathsep.join(
        (str(_scripts(scripts)), str(Path(sys.executable).parent), os.environ["PATH"])
    )
    env = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "100",
    }
    result = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=1800
    )
    assert result.returncode == 0, f"{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def _scripts(folder):
    """Makes the console scripts of this tree, which need not be installed."""
    folder.mkdir()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, entry in project["scripts"].items():
        script = folder / name
        package = entry.partition(".")[0]
        script.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m {package} "$@"\n', encoding="utf-8"
        )
        script.chmod(0o755)
    return folder
