"""Promise 6: each printed next step runs: it is built from the state of the run that printed it."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from tests.aoe_train.tiny import WORDS, save_bert, write_pairs, write_triplets
from tests.contract.conftest import SAMPLE, environment, run_here
from tests.docs.test_commands_are_known import SCRIPTS, tree

TRAIN = "aoe train --backbone bert --epochs 1 --max-length 16 --out model"
SENTENCES = [
    f"the {noun} is near a {place}" for noun in WORDS[5:30] for place in WORDS[30:35]
]
JUDGE = ["aoe sample-pairs", "pairs review", "aoe evaluate"]
RUNS = {  # a command, and the first words of each of its next steps
    "pairs audit bad.tsv --bad-rows skip": ["pairs report"],
    "pairs audit --bad-rows skip -- -:bug:.tsv": ["pairs report"],
    "aoe index --model bert --out -index -- -:bug:.tsv": [
        "aoe serve",
        "aoe duplicates",
    ],
    "pairs split positives.csv --out split": ["aoe train"],
    "pairs split bad.tsv --bad-rows skip --out split": ["aoe train"],
    "pairs merge train.tsv dev.tsv --out both": ["aoe train"],
    "pairs extract faq.csv --out mined": ["aoe train"],
    "pairs extract few.csv --split-sizes 1,0,0 --out mined": [],
    f"gis import {SAMPLE / 'quarryhq'} --work gis.work": ["gis detect", "gis render"],
    f"gis import {SAMPLE / 'quarryhq'} --work gis.work && gis render --work gis.work --out texts.csv": [
        "aoe index"
    ],
    "label generate --data=table.csv --columns text=said --llm wordnet --out 'our pairs' --dry-run": [
        "label generate"
    ],
    "label generate --data table.csv --columns text=said --llm wordnet --out 'our pairs'": [
        "aoe train"
    ],
    "label generate --data train.tsv --columns text=sentence1 --llm wordnet --out pairs": [
        *("label report", "aoe train")
    ],
    f"{TRAIN} --data train.tsv --dev-data dev.tsv": ["aoe evaluate"],
    f"{TRAIN} --data bad.tsv --bad-rows skip": [],
    f"{TRAIN} --data positives.csv": [],
    f"{TRAIN} --data triplets.jsonl": [],
    f"{TRAIN} --data triplets.jsonl --preset domain": JUDGE,
    f"{TRAIN} --data train.tsv --preset domain": JUDGE,
    f"{TRAIN} --data table.csv --columns anchor=other,positive=said --preset domain": JUDGE,
    f"{TRAIN} --data sentences.txt": JUDGE,
    f"{TRAIN} --data table.csv --columns text=said": JUDGE,
    f"{TRAIN} --data sentences.txt --purpose group": JUDGE,
    f"{TRAIN} --data sentences.txt --preset domain --interpolate 0": [],
    f"{TRAIN} --data train.tsv --accept-on train.tsv": [],
    "aoe index sentences.txt --model bert --out index": ["aoe serve", "aoe duplicates"],
    "aoe sample-pairs --data sentences.txt --model bert --model wide --out to-judge": JUDGE[
        1:
    ],
    "aoe sample-pairs --data sentences.txt --queries q.txt --model bert --model wide --out judged": JUDGE[
        1:
    ],
    "aoe mine --data positives.csv --model bert --out negatives": ["aoe train"],
    "aoe mine --data few.csv --model bert --out negatives": [],
    "aoe distill sentences.txt --model bert --out static": [],
    "aoe export --model bert --out half --dtype bf16": ["hf upload"],
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    save_bert(tmp_path / "bert", layers=3, dropout=0.0)
    save_bert(tmp_path / "wide", dim=48, seed=1, dropout=0.0)
    write_pairs(tmp_path / "train.tsv", 96, 1)
    write_pairs(tmp_path / "dev.tsv", 60, 2)
    write_triplets(tmp_path / "triplets.jsonl", 60, 3)
    lines = (tmp_path / "train.tsv").read_text().splitlines()
    for name in ("bad.tsv", "-:bug:.tsv"):
        (tmp_path / name).write_text(
            "\n".join([*lines, "\tno second text\t1", "one\ttwo\t"]) + "\n"
        )
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES))
    (tmp_path / "q.txt").write_text(
        "\n".join(f"is the {word} near" for word in WORDS[5:45])
    )
    answers = [f"about {text}, or not" for text in SENTENCES]
    pl.DataFrame({"anchor": SENTENCES, "positive": answers}).write_csv(
        tmp_path / "positives.csv"
    )
    pl.DataFrame({"question": SENTENCES, "answer": answers}).write_csv(
        tmp_path / "faq.csv"
    )
    pl.DataFrame({"question": SENTENCES[:5], "answer": answers[:5]}).write_csv(
        tmp_path / "few.csv"
    )
    pl.DataFrame({"said": SENTENCES, "other": answers}).write_csv(
        tmp_path / "table.csv"
    )
    return tmp_path


@pytest.mark.parametrize("line", RUNS)
def test_next_steps_run(
    place: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A dry run times a real model's steps.
    monkeypatch.setattr("aoe_train.training.train_plan._PROBES", 1)

    def run(words: list[str]) -> str:
        environ = environment(AOE_CACHE=str(place / "cache"), HF_HUB_OFFLINE="1")
        done = run_here(SCRIPTS[words[0]], *words[1:], cwd=place, environ=environ)
        assert done.code == 0, (words, done.err)
        return done.err

    *before, last = line.split(" && ")
    for command in before:
        run(shlex.split(command))
    lines = run(shlex.split(last)).splitlines()
    steps = [
        shlex.split(step)
        for heading, step in pairwise(lines)
        if heading.startswith("next: ")
    ]
    assert [" ".join(words[:2]) for words in steps] == RUNS[line]
    for words in steps:
        # Which wait for people.
        if words[:2] in (["pairs", "review"], ["aoe", "serve"]):
            tree(words[0]).commands[words[1]].make_context(words[1], words[2:])
            assert all(
                (place / word).exists()
                for word in words[2:]
                if "/" in word or word == "index"
            )
        # Not yet judged.
        elif words[0] in SCRIPTS and not words[-1].endswith(".review"):
            run([*words, *(["--dry-run"] if words[1] == "train" else [])])
