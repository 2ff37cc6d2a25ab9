"""Ways of training: each on a real model, killed and continued, and on rows and models it is not for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from aoe_train import Encoder
from aoe_train._backbones.bilstm import write_bilstm
from aoe_train._defaults import chosen
from aoe_train._objectives.ways import WAYS
from aoe_train._run_data import Sources
from aoe_train._settings import TrainSettings
from aoe_train._train import train
from pairkit.config import load_settings
from pairkit.errors import ConfigError
from tests.aoe_train.conftest import Killed
from tests.aoe_train.tiny import WORDS, save_generator, save_words


@pytest.fixture(scope="module")
def bert(shallow: Path) -> Path:
    """Of one layer: a run takes as long as there are layers, which are alike."""
    return shallow


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path_factory.getbasetemp() / "tokens"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = random.Random(4)
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(" ".join(words.sample(WORDS, words.randint(3, 9))) for _ in range(24)) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = random.Random(5)
    rows = [[" ".join(words.sample(WORDS, 4)) for _ in range(2)] + [str(n % 2)] for n in range(24)]
    path = tmp_path_factory.mktemp("pairs") / "nli.tsv"
    path.write_text("sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def bilstm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bilstm")
    write_bilstm(save_words(home / "words.txt"), home / "model", size=8)
    return home / "model"


def run(way: str, data: str, backbone: Path, out: Path, **flags: Any) -> Any:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    settings = load_settings(
        TrainSettings, flags={"preset": way, "optim.batch_size": 8, "log.steps": 1, **given}
    )
    sources = Sources({"texts": data}, str(backbone), out)
    return train(sources, settings, say=lambda _: None, progress=False)


@pytest.fixture(scope="module")
def generators(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Makes a masked language model of a backbone's vocabulary."""

    def make(backbone: Path) -> str:
        folder = tmp_path_factory.mktemp("generators")
        save_generator(backbone, folder)
        return str(folder)

    return make


def of(way: str, backbone: Path, generators: Callable[[Path], str]) -> dict[str, Any]:
    """What a way needs beside texts."""
    return {"objective__generator": generators(backbone)} if way == "diffcse" else {}


ON_TEXTS = [way for way, line in WAYS.items() if "single" in line.kinds]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


# On a real model each is slow; killed and continued on a small one, below, all run.
@pytest.mark.parametrize(
    ("way", "which"),
    [("tsdae", "bert"), *(pytest.param(way, "minilm", marks=pytest.mark.slow) for way in ON_TEXTS)],
)
def test_it_trains_a_model_and_leaves_nothing_of_itself(
    way: str,
    which: str,
    texts: str,
    tmp_path: Path,
    generators: Callable[[Path], str],
    request: pytest.FixtureRequest,
) -> None:
    backbone = request.getfixturevalue(which)
    few = tmp_path / "few.txt"
    few.write_text("\n".join(Path(texts).read_text().splitlines()[:16]) + "\n")
    record = run(way, str(few), backbone, tmp_path / "m", optim__lr=1e-4, **of(way, backbone, generators))
    assert record["result"]["steps"] == 2
    assert record["origin"]["settings"]["objective"]["way"] == way
    card = (tmp_path / "m/README.md").read_text()
    assert f"{WAYS[way].about}, the preset `{way}`" in card
    assert "| cosine |" not in card
    losses = [entry["loss"] for entry in record["history"]]
    assert np.isfinite(losses).all()
    assert min(losses) > 0
    folders = {path.name for path in (tmp_path / "m").iterdir() if path.is_dir()}
    assert folders <= {"1_Pooling", "2_Normalize", *WAYS[way].encoder}
    before, after = (
        Encoder.load(folder, device="cpu").encode(WORDS[:8]) for folder in (backbone, tmp_path / "m")
    )
    assert before.shape == after.shape
    assert np.abs(before - after).max() > 1e-6
    if not WAYS[way].encoder:
        assert np.abs(before - after).max() < 0.2


@pytest.mark.parametrize("way", WAYS)
def test_killed_and_continued_it_ends_at_the_same_weights(
    way: str,
    texts: str,
    pairs: str,
    bert: Path,
    bilstm: Path,
    tmp_path: Path,
    kill_at: Any,
    generators: Callable[[Path], str],
) -> None:
    data, backbone = (texts, bert) if way in ON_TEXTS else (pairs, bilstm)
    flags = {"log__checkpoint_steps": 2, "optim__lr": 1e-3, "optim__epochs": 2, **of(way, bert, generators)}
    whole = run(way, data, backbone, tmp_path / "whole", **flags)
    kill_at(5)
    with pytest.raises(Killed):
        run(way, data, backbone, tmp_path / "killed", **flags)
    record = run(way, data, backbone, tmp_path / "killed", **flags)
    assert record["result"]["steps"] == whole["result"]["steps"] == 6
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_it_can_not_learn_from_are_refused_before_a_model_is_loaded(
    way: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("anchor,positive\na,b\nc,d\n")
    with pytest.raises(
        ConfigError, match=f"preset {way}: found positive data, expected {WAYS[way].kinds[0]}"
    ):
        run(way, str(path), tmp_path / "no-model", tmp_path / "m")


def test_consert_learns_from_labelled_pairs_too(pairs: str, bert: Path, tmp_path: Path) -> None:
    record = run("consert", pairs, bert, tmp_path / "m", optim__lr=1e-3)
    for entry in record["history"]:
        assert entry["loss"] == pytest.approx(entry["sbert"] + 0.15 * entry["contrastive"], rel=1e-4)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"run__chunk": 4}, "run.chunk"),
        ({"encoder__long_text": "chunks"}, "long_text=chunks"),
        ({"objective__dims": [32, 8]}, "leave dims and layers out"),
        ({"objective__way": "bow"}, "expected one of ct"),
        ({"teacher__model": "minilm"}, "teacher"),
        ({"objective__generator": "bert"}, "only the preset diffcse edits texts"),
    ],
)
def test_what_does_not_go_with_a_way_is_named_before_a_model_is_loaded(
    flags: dict[str, Any], named: str, texts: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=named):
        run("ct", texts, tmp_path / "no-model", tmp_path / "m", **flags)


def test_what_the_backbones_folder_asks_for_is_named_too(texts: str, bert: Path, tmp_path: Path) -> None:
    Encoder.load(bert, device="cpu", long_text="chunks").save(tmp_path / "chunks")
    with pytest.raises(ConfigError, match=r"does not go with encoder\.long_text"):
        run("ct", texts, tmp_path / "chunks", tmp_path / "m")


def test_learning_rates_are_the_ways_own_unless_given() -> None:
    for way, line in WAYS.items():
        settings = load_settings(TrainSettings, flags={"preset": way})
        assert chosen(settings, line.kinds[0], rows=1000, dim=32).optim.lr == line.lr
    settings = load_settings(TrainSettings, flags={"preset": "ct", "optim.lr": 0.5})
    assert chosen(settings, "single", rows=1000, dim=32).optim.lr == 0.5
