"""Promise 8: a verdict names its interval and its data; without labels no gain is claimed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aoe_train import evaluate
from tests.aoe_train.tiny import save_bert
from tests.contract.conftest import environment, run_here
from tests.contract.label_command import sentences

ROWS = [
    {"text1": f"{number}", "text2": f"{number + label} x", "label": label}
    for number in range(40)
    for label in (0, 1)
]


def right(texts: list[str]) -> np.ndarray:
    """Vectors by which exactly the pairs with label 1 are similar."""
    numbers = [int(text.split()[0]) - text.endswith("x") for text in texts]
    return np.eye(41)[numbers]


def chance(texts: list[str]) -> np.ndarray:
    return np.stack(
        [np.random.default_rng([*text.encode()]).normal(size=4) for text in texts]
    )


@pytest.mark.parametrize(
    "models, verdict",
    [
        ((right, chance), "better"),
        ((chance, right), "worse"),
        ((right, right), "inconclusive"),
    ],
)
def test_a_verdict_names_its_interval_and_data(models: Any, verdict: str) -> None:
    model, against = models
    result = evaluate(model, data=ROWS, against=against)
    (gain,) = result.gains.values()
    assert gain.word == verdict
    assert re.fullmatch(
        r"AUC [\d.]+ -> [\d.]+ \(\S+ \[\S+, \S+\], 80 pairs\)", str(gain)
    )
    (task,) = result.to_dict().values()
    assert task["gain"]["verdict"] == verdict
    assert len(task["gain"]["ci95"]) == 2
    assert not evaluate(model, data=ROWS, against=against, resamples=0).gains


def test_without_labels_no_gain_is_claimed(tmp_path: Path) -> None:
    sentences(tmp_path / "texts.txt", 40)
    save_bert(tmp_path / "bert", seed=1)
    arguments = "train --data texts.txt --preset domain --backbone bert --out model"
    done = run_here(
        "aoe_train", *arguments.split(), cwd=tmp_path, environ=environment()
    )
    assert "not shown to be better than its backbone" in done.err
    card = (tmp_path / "model" / "README.md").read_text()
    assert not re.search(r"\b(?:better|improve\w*|gains?)\b", done.out + card)
