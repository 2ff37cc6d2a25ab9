"""Rows that stay on disk are the rows that are read into memory, to the bit, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data import streamed as module
from aoe_train.data.examples import read_examples
from aoe_train.data.streamed import number_texts
from aoe_train.model.run_folder import hash_examples
from aoe_train.records import Examples
from aoe_train.settings.training import Conflicts
from pairkit.app.errors import DataError
from pairkit.dataset import row_stream
from pairkit.dataset.labels import AS_FOUND, LabelRules, label_rules
from tests.aoe_train.conftest import Killed
from tests.pairkit.peak import peak_mib


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rows"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is done in rounds has several; disks are not waited for."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(row_stream, "_STRETCH", 8)
    monkeypatch.setattr("pairkit.dataset.parquet_batches.ROWS", 4)
    monkeypatch.setattr(module, "_SHARE", 8)
    monkeypatch.setattr(module, "_BLOCK", 16)
    monkeypatch.setattr(module, "_ROWS", 8)
    monkeypatch.setattr("aoe_train.data.examples._SHARE", 8)
    monkeypatch.setattr("aoe_train.data.examples._BLOCK", 8)
    monkeypatch.setattr("aoe_train.records._BLOCK", 8)


def shards(folder: Path, table: pl.DataFrame, count: int = 3) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-table.height // count)
    for number in range(count):
        path = folder / f"train-{number:05}-of-{count:05}.parquet"
        table.slice(number * size, size).write_parquet(path, row_group_size=4)
    return folder


def labelled(rows: int, seed: int = 0) -> pl.DataFrame:
    draw = random.Random(seed)
    texts = [f"text {draw.randrange(rows)} ü" for _ in range(2 * rows)]
    labels = [draw.choice([0, 1]) for _ in range(rows)]
    return pl.DataFrame({"text1": texts[::2], "text2": texts[1::2], "label": labels})


def triplets(rows: int, seed: int = 0) -> pl.DataFrame:
    draw = random.Random(seed)
    names = ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
    table = {name: [f"text {draw.randrange(2 * rows)}" for _ in range(rows)] for name in names}
    for name in names[3:]:
        table[name] = [text if draw.random() < 0.5 else None for text in table[name]]
    return pl.DataFrame(table)


def same(one: Examples, other: Examples) -> bool:
    arrays = (one.rows, other.rows), (one.labels, other.labels)
    return (
        [*one.texts] == [*other.texts]
        and all(a is None if b is None else a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays)
        and (one.kind, one.reading) == (other.kind, other.reading)
    )


def both(source: Path, **options: Any) -> tuple[Examples, Examples]:
    return read_examples(source, streaming="on", **options), read_examples(source, **options)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("table", "rules"),
    [
        (labelled(50), AS_FOUND),
        (labelled(50), label_rules("1=1,0=skip", None)),
        (labelled(50).with_columns(label=pl.Series([n / 10 for n in range(50)])), AS_FOUND),
        (labelled(50).with_columns(label=pl.Series(range(50))), label_rules(None, "0,100")),
        (triplets(50), AS_FOUND),
        (labelled(50).select(anchor="text1", positive="text2"), AS_FOUND),
        (labelled(50).select("text1"), AS_FOUND),
        (labelled(50).with_columns(text1=pl.lit("always the same")), AS_FOUND),
        (
            labelled(50).with_columns(llms=pl.Series([["an LLM"], []] * 25), prompt_hashes=pl.lit("x")),
            AS_FOUND,
        ),
    ],
    ids=["binary", "skipped", "graded", "scaled", "triplets", "positives", "single", "one text", "written"],
)
def test_the_same_examples(tmp_path: Path, table: pl.DataFrame, rules: LabelRules) -> None:
    streamed, in_memory = both(shards(tmp_path / "d", table), rules=rules)
    assert same(streamed, in_memory)
    assert hash_examples(streamed) == hash_examples(in_memory)
    assert not streamed.rows.flags.writeable  # a view of the file
    assert not isinstance(streamed.texts, list)
    lengths = np.arange(1, len(streamed.texts) + 1)
    expected = (lengths[in_memory.rows] * (in_memory.rows >= 0)).sum(axis=1)
    assert streamed.row_lengths(lengths).tolist() == expected.tolist()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("conflicts", ["keep", "drop", "first"])
@pytest.mark.parametrize("table", [labelled(40, 1), triplets(40, 1)], ids=["pairs", "triplets"])
def test_contradictions_are_found_and_told_as_in_memory(
    tmp_path: Path, table: pl.DataFrame, conflicts: Conflicts
) -> None:
    contradicting = pl.concat([table, table.with_columns(pl.col(table.columns[1]).shuffle(3))])
    if "label" in table.columns:
        contradicting = pl.concat([table, table.head(9).with_columns(label=1 - pl.col("label"))])
    folder = shards(tmp_path / "d", contradicting)
    told: tuple[list[str], list[str]] = [], []
    streamed = read_examples(folder, streaming="on", conflicts=conflicts, say=told[0].append)
    in_memory = read_examples(folder, conflicts=conflicts, say=told[1].append)
    assert same(streamed, in_memory)
    assert told[0][1:] == told[1]
    assert told[1][0].split()[1:4] == ["pairs", "have", "different"]
    with pytest.raises(DataError) as at_once:
        read_examples(folder, conflicts="error")
    with pytest.raises(DataError) as from_disk:
        read_examples(folder, streaming="on", conflicts="error")
    assert str(from_disk.value) == str(at_once.value)


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 9), st.integers(1, 9))
def test_equal_texts_have_equal_numbers_in_the_order_of_their_coming(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], share: int, block: int
) -> None:
    draw = np.random.default_rng(1).integers(0, 1 << 63, (13, 2)).astype(np.uint64) * np.uint64(2)
    draw[:3, 0] = draw[0, 0]  # alike in their first half
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SHARE", share)
        patch.setattr(module, "_BLOCK", block)
        path = tmp_path_factory.mktemp("n") / "numbers.npy"
        known = number_texts(draw[values].reshape(-1, 2), path)
    first = {value: number for number, value in enumerate(dict.fromkeys(values))}
    assert known == len(first)
    assert np.load(path).tolist() == [first[value] for value in values]


def test_what_was_put_on_disk_serves_later_runs(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path / "d", labelled(30))
    told: list[str] = []
    first = read_examples(folder, streaming="on", say=told.append)
    (kept,) = cache.iterdir()
    assert {path.name for path in kept.iterdir()} == {
        *("about.json", "checksum.npy", "labels.npy", "numbers.npy", "rows.npy", "text_ends.npy", "texts.npy")
    }
    assert told[0] == (
        f"{folder}: 30 rows are read from {kept} as they are needed (0 MiB); set streaming to off to read"
        " them into memory"
    )
    shutil.move(folder, tmp_path / "moved")
    monkeypatch.setattr(module, "read_into", lambda *_: pytest.fail("read again"))
    assert same(first, read_examples(tmp_path / "moved", streaming="on"))


def test_whatever_decides_the_rows_changes_where_they_are_kept(tmp_path: Path, cache: Path) -> None:
    table = labelled(30)
    folder = shards(tmp_path / "a", table)
    read_examples(folder, streaming="on")
    read_examples(folder, streaming="on", rules=label_rules("0=1,1=0", None))
    read_examples(folder, streaming="on", columns={"text1": "text2", "text2": "text1", "label": "label"})
    read_examples(folder, streaming="on", rules=label_rules(None, "0,1"))
    read_examples(shards(tmp_path / "b", table.reverse()), streaming="on")
    read_examples(shards(tmp_path / "c", table, 2), streaming="on")
    assert len([*cache.iterdir()]) == 6
    with_names = shards(tmp_path / "e", table)
    (with_names / "train-00000-of-00003.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"train-00000.*not readable"):
        read_examples(with_names, streaming="on")
    assert len([*cache.iterdir()]) == 6  # and nothing is left of what failed


@pytest.mark.parametrize("harm", ["cut", "flip", "missing"])
def test_damaged_arrays_are_made_anew(tmp_path: Path, cache: Path, harm: str) -> None:
    folder = shards(tmp_path / "d", labelled(30))
    read_examples(folder, streaming="on")
    (kept,) = cache.iterdir()
    path = kept / "texts.npy"
    data = bytearray(path.read_bytes())
    path.unlink()
    if harm != "missing":
        data[-1] ^= 1
        path.write_bytes(data[:-1] if harm == "cut" else data)
    assert same(*both(folder))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("moment", [0, 3, 7, 12, 18, 24, 29])
def test_a_killed_preparation_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Killed at any of the moments when something is on disk, or just before it is."""
    folder = shards(tmp_path / "d", triplets(40))
    read_examples(folder, streaming="on")
    (kept,) = cache.iterdir()
    whole = {path.name: path.read_bytes() for path in kept.iterdir()}
    shutil.rmtree(kept)
    calls = 0

    def killed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == moment + 1:
                raise Killed
            return original(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for place in (
            "model.tokens.grown_arrays.GrowingArrays.keep",
            "model.tokens.grown_arrays.os.fsync",
            "data.streamed.remove",
        ):
            name = f"aoe_train.{place}"
            room, _, attribute = name.rpartition(".")
            target = _find(room)
            patch.setattr(target, attribute, killed(getattr(target, attribute)))
        with pytest.raises(Killed):
            read_examples(folder, streaming="on")
    assert not kept.exists()
    assert same(*both(folder))
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == whole
    assert [path.name for path in cache.iterdir()] == [kept.name]


def _find(room: str) -> Any:
    """A module, or a class in one, by its dotted name."""
    import importlib

    try:
        return importlib.import_module(room)
    except ModuleNotFoundError:
        module, _, name = room.rpartition(".")
        return getattr(_find(module), name)


_PREPARE = """
import os, signal, sys
from aoe_train.data.examples import read_examples
from pairkit.dataset import row_stream

def show(at):
    print(at.stage, at.done, flush=True)
    if f"{at.stage} {at.done}" == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

row_stream._STRETCH = 8
read_examples(sys.argv[1], streaming="on", show=show)
"""


def test_kill_9_while_rows_are_put_on_disk(tmp_path: Path) -> None:
    folder = shards(tmp_path / "d", labelled(60))
    begun = []
    for kill_at in ("read rows 36", "keep texts 28", ""):
        command = [sys.executable, "-c", _PREPARE, str(folder), kill_at]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == (-signal.SIGKILL if kill_at else 0), ran.stderr
        first = {line.rpartition(" ")[0]: line for line in reversed(ran.stdout.splitlines())}
        begun.append([first.get(stage) for stage in ("read rows", "number texts", "keep texts")])
    assert begun == [
        ["read rows 8", None, None],
        ["read rows 36", "number texts 0", "keep texts 8"],
        ["read rows 60", None, "keep texts 28"],
    ]
    assert same(*both(folder))


_IMPORTS = """
import pyarrow.parquet
from aoe_train.data.examples import read_examples
"""
_FEW = 10_000  # a whole shard, of several pieces


def write(folder: Path, rows: int, chars: int) -> Path:
    """Labelled pairs of random texts, in shards of 10,000 rows."""
    folder.mkdir()
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        texts = [[os.urandom(chars // 2).hex() for _ in range(count)] for _ in range(2)]
        table = pl.DataFrame({"text1": texts[0], "text2": texts[1], "label": [0, 1] * (count // 2)})
        table.write_parquet(folder / f"part-{start:09}.parquet", row_group_size=2_000)
    return folder


def growth(tmp_path: Path, code: str, rows: int, chars: int) -> float:
    """MiB that so many rows take beyond those that a few take."""
    few, many = (write(tmp_path / str(count), count, chars) for count in (_FEW, rows))
    took = []
    for folder in (few, many):
        words, mib = peak_mib(_IMPORTS, code, folder)
        assert words == "done"
        took.append(mib)
    return took[1] - took[0]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


def test_texts_are_not_held(tmp_path: Path) -> None:
    # 20,000 rows more have 23 MiB of texts: 57 MiB where they are read into memory.
    assert growth(tmp_path, 'read_examples(sys.argv[1], streaming="on")', 30_000, 600) < 15
