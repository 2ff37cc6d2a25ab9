"""Training on rows that stay on disk ends with the weights of training on rows in memory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from aoe_train.data.run_data import Sources
from aoe_train.model.tokens import tokens as tokens_room
from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.settings.training import TrainSettings
from aoe_train.training.train import train
from pairkit.app.errors import ConfigError
from pairkit.app.settings import load_settings
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_streamed import shards
from tests.aoe_train.tiny import WORDS, wordpiece


@pytest.fixture(scope="module")
def bert(shallow: Path) -> Path:
    """Of one layer: a run takes as long as there are layers, which are alike."""
    return shallow


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def text(draw: np.random.Generator) -> str:
    return " ".join(draw.choice(WORDS, int(draw.integers(2, 9))))


def pairs() -> pl.DataFrame:
    draw = np.random.default_rng(0)
    ours = [text(draw) for _ in range(40)]
    rows = [(str(draw.choice(ours)), text(draw), int(draw.integers(2))) for _ in range(60)]
    return pl.DataFrame(rows, schema=["text1", "text2", "label"], orient="row")


def triplets() -> pl.DataFrame:
    draw = np.random.default_rng(1)
    rows = [
        (text(draw), text(draw), [text(draw) for _ in range(int(draw.integers(1, 4)))]) for _ in range(40)
    ]
    return pl.DataFrame(rows, schema=["anchor", "positive", "negatives"], orient="row")


def run(
    data: Path, backbone: Path, out: Path, streaming: str, **flags: Any
) -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    given = {name.replace("__", "."): value for name, value in flags.items()}
    fixed = {"optim.batch_size": 16, "optim.lr": 1e-3, "optim.epochs": 2, "data.streaming": streaming}
    record = train(
        Sources(data=str(data), backbone=str(backbone), out=out),
        load_settings(TrainSettings, flags={**fixed, **given}),
        say=told.append,
        progress=False,
    )
    return record, told


def assert_same_model(one: Path, other: Path) -> None:
    expected = load_file(other / "model.safetensors")
    assert all(
        torch.equal(value, expected[name]) for name, value in load_file(one / "model.safetensors").items()
    )
    for name in ("training_texts.npy", "aoe.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize(
    ("table", "flags"),
    [
        (pairs(), {}),
        (pairs(), {"data__conflicts": "drop", "batches__strategy": "shuffle"}),
        (triplets(), {"prompts": {"query": "the ", "negative": "a "}}),
    ],
    ids=["labels", "conflicts", "negatives and prompts"],
)
def test_the_same_weights(tmp_path: Path, bert: Path, table: pl.DataFrame, flags: dict[str, Any]) -> None:
    folder = shards(tmp_path / "d", table)
    in_memory, quiet = run(folder, bert, tmp_path / "memory", "off", **flags)
    streamed, told = run(folder, bert, tmp_path / "disk", "on", **flags)
    assert_same_model(tmp_path / "disk", tmp_path / "memory")
    for part in ("origin", "rows", "batches", "history", "files"):
        assert streamed[part] == in_memory[part]
    assert told[1:] == quiet
    assert "rows are read from" in told[0]


def test_a_pattern_of_files_in_two_folders(tmp_path: Path, bert: Path) -> None:
    shards(tmp_path / "d" / "a", pairs(), 2)
    shards(tmp_path / "d" / "b", pairs().reverse(), 1)
    record, _ = run(tmp_path / "d" / "?" / "*.parquet", bert, tmp_path / "m", "on")
    assert record["rows"]["train"] == 120
    assert set(record["files"]["data"]) == {
        *(
            "a/train-00000-of-00002.parquet",
            "a/train-00001-of-00002.parquet",
            "b/train-00000-of-00001.parquet",
        )
    }


def test_a_killed_run_goes_on_wherever_its_rows_lie(
    tmp_path: Path, bert: Path, kill_at: Callable[[int], None]
) -> None:
    folder = shards(tmp_path / "d", pairs())
    run(folder, bert, tmp_path / "whole", "off")
    for streaming in ("on", "off"):  # what goes on has them in the other place
        kill_at(5)
        with pytest.raises(Killed):
            run(folder, bert, tmp_path / streaming, streaming, log__checkpoint_steps=3)
        _, told = run(folder, bert, tmp_path / streaming, "off" if streaming == "on" else "on")
        assert any("continues after step 3" in line for line in told)
        assert_same_model(tmp_path / streaming, tmp_path / "whole")


def test_small_files_are_read_into_memory_unless_asked(
    tmp_path: Path, bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path / "d", pairs())
    run(folder, bert, tmp_path / "a", "auto")
    assert not (cache / "rows").exists()
    monkeypatch.setattr("aoe_train.data.examples._LARGE", 1000)
    run(folder, bert, tmp_path / "b", "auto")
    assert len([*(cache / "rows").iterdir()]) == 1
    with pytest.raises(ConfigError, match="only files can be streamed; save its rows as Parquet files"):
        train(
            Sources(data=pairs(), backbone=str(bert), out=tmp_path / "c"),
            load_settings(TrainSettings, flags={"data.streaming": "on"}),
            progress=False,
        )


@pytest.mark.parametrize("after", [1, 3])
def test_tokens_go_on_where_they_were_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(tokens_room, "_AT_ONCE", 4)
    monkeypatch.setattr(tokens_room, "_KEPT", 2)
    draw = np.random.default_rng(0)
    texts = [text(draw) for _ in range(30)]
    prompts = ["a ", "the "] * 15

    def build(folder: Path) -> TokenStore:
        return TokenStore.build(
            texts, wordpiece(), max_length=8, prompts=prompts, include_prompt=False, cache_dir=folder
        )

    build(tmp_path / "whole")
    calls: list[int] = []

    def encode(raw: Any, some: list[str]) -> Any:
        calls.append(len(some))
        if len(calls) == after:
            raise Killed
        return original(raw, some)

    original = tokens_room._encode
    monkeypatch.setattr(tokens_room, "_encode", encode)
    with pytest.raises(Killed):
        build(tmp_path / "cut")
    store = build(tmp_path / "cut")
    assert sum(calls[after:]) == {1: 30, 3: 22}[after]
    (made,), (whole,) = (tmp_path / "cut").iterdir(), (tmp_path / "whole").iterdir()
    assert {path.name for path in made.iterdir()} == {path.name for path in whole.iterdir()}
    for path in whole.glob("*.npy"):
        assert path.read_bytes() == (made / path.name).read_bytes()
    assert len(store) == 30


def test_a_full_disk(tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    monkeypatch.setenv("AOE_CACHE", str(disk))
    folder = shards(
        tmp_path / "d", pl.concat([pairs().with_columns(pl.col("text1") + f" {n}") for n in range(20)])
    )
    try:
        with pytest.raises(
            ConfigError, match=r"disk/rows/\S+: no space left on the device; free some and run"
        ):
            run(folder, bert, tmp_path / "m", "on")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
