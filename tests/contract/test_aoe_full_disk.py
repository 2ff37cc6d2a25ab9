"""A disk that takes no more: one line, and no half of a result where the result belongs.

The system's limit on the size of a file stands for the disk: writing fails in the middle of a file, as there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.aoe_train.test_train import write_pairs
from tests.aoe_train.tiny import WORDS, save_bert
from tests.contract.conftest import Done, environment, run_here

TRAIN = ("train", "--data", "train.tsv", "--backbone", "bert", "--epochs", "1", "--lr", "1e-4", "--quiet")
EVERY_STEP = ("--set", "log.checkpoint_steps=1")
JUDGE = ("evaluate", "--model", "bert", "--data", "train.tsv", "--no-cache", "--resamples", "0")
JUDGE += ("--dim", "32,16,8", "--quantize", "float32,int8", "--json")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, pairs, and texts."""
    folder = tmp_path_factory.mktemp("full")
    save_bert(folder / "bert", dropout=0.0)
    write_pairs(folder / "train.tsv", 48, 1)
    (folder / "texts.txt").write_text(
        "".join(f"{one} {other}\n" for one in WORDS[:40] for other in WORDS[:40])
    )
    pairs = [f"{one} {other}\t{other} {one}" for one in WORDS[:30] for other in WORDS[30:50]]
    (folder / "pairs.tsv").write_text("anchor\tpositive\n" + "\n".join(pairs) + "\n")
    return folder


def run(place: Path, *arguments: str, most: int | None = None) -> Done:
    return run_here(
        "aoe_train", *arguments, cwd=place, environ=environment(AOE_CACHE="cache"), file_bytes=most
    )


@pytest.mark.parametrize(
    ("arguments", "most", "told"),
    [
        pytest.param((*TRAIN, "--out", "m"), 20_000, "m: ", marks=pytest.mark.slow),
        (
            (*TRAIN, *EVERY_STEP, "--out", "m"),
            150_000,
            "m.work/step-1: ",
        ),  # of weights and optimiser, one fits
        (("encode", "texts.txt", "--model", "bert", "--out", "v.npy"), 20_000, "v.npy.partial/vectors.npy: "),
        pytest.param(
            ("encode", "texts.txt", "--model", "bert", "--out", "v.parquet"),
            205_000,
            "v.parquet.partial/table",
            marks=pytest.mark.slow,
        ),
        ((*JUDGE, "--out", "figures.json"), 700, "figures.json: "),
        (("mine", "--data", "pairs.tsv", "--out", "mined"), 4_000, ".mined.partial/triplet/train-00000"),
    ],
    ids=["model", "checkpoint", "npy", "parquet", "figures", "mined"],
)
def test_it_is_one_line_and_leaves_no_half(
    place: Path, arguments: tuple[str, ...], most: int, told: str
) -> None:
    done = run(place, *arguments, most=most)
    assert done.code == 2, done.err
    assert done.error.startswith(f"error: {told}")
    assert "another path" in done.error or "free some" in done.error
    out = place / arguments[-1]
    assert not out.exists()
    left = {path.name for path in place.glob(f"*{out.name}*")}
    assert left <= {f"{out.name}.partial"}  # from which encoding continues
    if out.suffix == ".npy":
        assert run(place, *arguments).code == 0
        assert len(np.load(out)) == len(WORDS[:40]) ** 2
