"""A domain without labels: sentences -> `label` -> `aoe train` -> `aoe evaluate`, beside its baselines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import Done, run_module

WORDS = ("doctor", "pain", "fever", "medicine", "child", "treatment", "letter", "book", "house", "river")
SENTENCES = [
    f"The {one} {verb} the {adjective} {other}."
    for one, other in zip(WORDS, WORDS[3:] + WORDS[:3], strict=True)
    for verb in ("helps", "causes")
    for adjective in ("big", "cold", "good")
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sentences and a tiny backbone."""
    folder = tmp_path_factory.mktemp("domain")
    save_bert(folder / "bert")
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    return folder


def run(place: Path, package: str, *arguments: str) -> Done:
    done = run_module(package, *arguments, cwd=place, environ={**os.environ, "AOE_CACHE": "cache"})
    assert done.code == 0, done.err
    return done


def test_from_sentences_to_figures_beside_baselines(place: Path) -> None:
    made = run(
        *(place, "llm_labeler", "generate", "--input", "sentences.txt", "--llm", "wordnet", "--draw", "50"),
        *("--out", "pairs", "--set", "split.test=0.4", "--json"),
    )
    assert made.result["positives"] > 10
    few = ("--backbone", "bert", "--batch-size", "8", "--json", "-q")
    domain = ("--preset", "domain", "--top-layers", "1", "--lr", "1e-2")
    trained = run(place, "aoe_train", "train", "--data", "pairs/triplet", "--out", "model", *domain, *few)
    assert trained.result["steps"] > 0
    run(
        *(place, "aoe_train", "train", "--data", "sentences.txt", "--out", "simcse"),
        *("--preset", "simcse", "--lr", "1e-4", "--epochs", "1", *few),
    )
    models = [word for name in ("bert", "simcse", "model") for word in ("--model", name)]
    told = run(
        place, "aoe_train", "evaluate", *models, "--data", "pairs", "--resamples", "0", "--json"
    ).result
    assert list(told) == ["bert", "simcse", "model"]
    figures = {name: told[name]["pairs"]["spearman"] for name in told}
    assert len(set(figures.values())) == 3
    # The tests' sentences were among those that SimCSE saw without labels, and it says so.
    assert told["simcse"]["pairs"]["overlap"]["texts"] > 0
    assert told["model"]["pairs"]["overlap"]["texts"] == 0
    assert told["bert"]["pairs"]["overlap"] is None
