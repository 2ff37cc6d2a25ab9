"""`label judge --scale score` on its command line: `aoe train` takes what it makes as graded pairs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_labeler._emulator import Options, serve
from pairkit.reader import read_pairs
from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import Done, run_module

WORDS = ("doctor", "pain", "fever", "medicine", "child", "treatment", "letter", "book", "house", "river")


def scored(tmp_path: Path) -> Done:
    """Thirty pairs, judged by two LLMs, in the folder `scored`."""
    rows = ["text1\ttext2\tlabel"]
    for place, one in enumerate(WORDS):
        other = WORDS[place - 3]
        for number, text in enumerate(
            (f"The {one} helps the {other}.", f"A {one} is big.", f"The {other} causes.")
        ):
            rows.append(f"The {one} causes the {other}.\t{text}\t{number % 2}")
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n")
    with serve(Options(models=("one", "other"))) as server:
        entries = [
            f'[llm.{name}]\nkind = "server"\nmodel = "{name}"\nbase_url = "{server.base_url}"\nlocal = true\n'
            for name in ("one", "other")
        ]
        (tmp_path / "llms.toml").write_text("\n".join(entries))
        return run_module(
            *("llm_labeler", "judge", "-i", "pairs.tsv", "--llm", "one,other", "--scale", "score"),
            *("-c", "llms.toml", "--out", "scored", "--json"),
            cwd=tmp_path,
        )


def test_scores_grade_pairs(tmp_path: Path) -> None:
    judged = scored(tmp_path)
    assert judged.code == 0, judged.err
    assert judged.result["splits"]["train"]["pairs"] == 30
    assert judged.result["judges"]["compared"] == 30
    assert -1 <= judged.result["judges"]["alpha_ordinal"] <= 1
    labels = read_pairs(tmp_path / "scored")["train"]["label"]
    assert 0 <= labels.min() < labels.max() <= 1  # type: ignore[operator]
    assert any(0 < label < 1 for label in labels)


@pytest.mark.slow
def test_scored_pairs_train_a_model(tmp_path: Path) -> None:
    save_bert(tmp_path / "bert")
    scored(tmp_path)
    trained = run_module(
        *("aoe_train", "train", "--data", "scored", "--backbone", "bert", "--out", "model", "--json", "-q"),
        *("--batch-size", "8", "--epochs", "1", "--lr", "1e-4"),
        cwd=tmp_path,
        environ={**os.environ, "AOE_CACHE": "cache"},
    )
    assert trained.code == 0, trained.err
    assert trained.result["steps"] == 4
