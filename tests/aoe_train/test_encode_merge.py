"""Shards of an output: where inputs are cut, and their merge against one run; a fake model."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.encoding import encode_file, merge_shards
from aoe_train.encoding.parts import VectorShard, ends_of, parts, shards_beside
from aoe_train.encoding.record import record_path
from pairkit.app.errors import ConfigError, DataError

DIM = 5


def fake(texts: list[str]) -> np.ndarray:
    """Vectors that tell the text, and how many came with it, as batches of a real model may."""
    return np.array([[len(text), *map(ord, text[-3:]), len(texts)] for text in texts], np.float32)


def run(path: Path, out: Path, shard: str | None = None, **more: Any) -> Path:
    named = None if shard is None else VectorShard.named(shard)
    settings = {"model": more.pop("model", "w")}
    return encode_file(path, out, partial(map, fake), DIM, settings, part_texts=4, shard=named, **more).out


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("id,text\n" + "".join(f"{n},text number {n:05}\n" for n in range(23)))
    return path


RANGES = np.array([[0] * DIM, [60] * DIM], np.float32)
HOW = [{}, {"quantize": "int8"}, {"quantize": "int8", "ranges": RANGES}, {"quantize": "ubinary"}]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("of", [1, 3, 9])
def test_shards_give_the_bytes_of_one_run(
    table: Path, tmp_path: Path, suffix: str, how: dict[str, Any], of: int
) -> None:
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    run(table, whole, **how)
    for number in range(of, 0, -1):
        shard = run(table, out, f"{number}/{of}", **how)
        assert shard == tmp_path / f"out-{number}-of-{of}.npy"
        assert np.load(shard).dtype == np.float32
    done = merge_shards(table, out)
    assert (done.texts, done.resumed, done.quantize) == (23, 0, how.get("quantize", "float32"))
    assert out.read_bytes() == whole.read_bytes()
    assert record_path(out).read_bytes() == record_path(whole).read_bytes()
    assert not [*tmp_path.glob("*.partial")]
    assert merge_shards(table, out).resumed == 23  # finished before


def test_a_shard_goes_on_where_it_was_stopped(table: Path, tmp_path: Path) -> None:
    def stopped(parts: Any) -> Any:
        for number, part in enumerate(parts):
            if number == 1:
                raise KeyboardInterrupt
            yield fake(part)

    run(table, tmp_path / "whole.npy")
    out, second = tmp_path / "out.npy", VectorShard(2, 2)
    with pytest.raises(KeyboardInterrupt):
        encode_file(table, out, stopped, DIM, {"model": "w"}, part_texts=4, shard=second)
    run(table, out, "1/2")
    with pytest.raises(DataError, match=r"out-2-of-2\.npy: is not finished; run .* --shard 2/2"):
        merge_shards(table, out)
    done = encode_file(table, out, partial(map, fake), DIM, {"model": "w"}, part_texts=4, shard=second)
    assert (done.texts, done.resumed) == (11, 4)
    merge_shards(table, out)
    assert out.read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_what_does_not_go_together_is_named(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    with pytest.raises(DataError, match=r"no shards, such as out-1-of-4\.npy; make them by --shard"):
        merge_shards(table, out)
    run(table, out, "1/3")
    run(table, out, "3/3")
    with pytest.raises(
        DataError, match=r"out-2-of-3\.npy: is missing; run the same command with --shard 2/3"
    ):
        merge_shards(table, out)
    run(table, out, "2/3", model="v")
    with pytest.raises(
        ConfigError, match=r"out-2-of-3\.npy: differs from out-1-of-3\.npy in model \(w there, v"
    ):
        merge_shards(table, out)
    run(table, out, "2/3", fresh=True)
    run(table, out, "2/2")
    with pytest.raises(ConfigError, match="beside it are shards of 2 and of 3; remove"):
        merge_shards(table, out)
    (tmp_path / "out-2-of-2.npy").unlink()
    other = tmp_path / "other.csv"
    other.write_text(table.read_text() + "23,one more\n")
    with pytest.raises(ConfigError, match=r"other\.csv: is not the input that .*out-1-of-3\.npy was made of"):
        merge_shards(other, out)
    out.write_bytes(b"precious")
    with pytest.raises(ConfigError, match="already exists; give --fresh"):
        merge_shards(table, out)
    assert merge_shards(table, out, fresh=True).texts == 23


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shard": None}, r"out-2-of-2\.npy: is no shard as its record has it; .* --shard 2/2 and --fresh"),
        ({"shard": {"number": 1}}, "is another shard by its record"),
        ({"shard": {"first": 8}}, "begins at another text than the shard before it ends"),
        ({"bytes": 1}, "is no shard as its record has it"),
        ({"texts": 7}, "the shards have 19 of 23 texts"),
    ],
)
def test_a_damaged_shard(table: Path, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    out = tmp_path / "out.npy"
    run(table, out, "1/2")
    place = record_path(run(table, out, "2/2"))
    record = json.loads(place.read_text())
    for key, value in change.items():
        record[key] = record[key] | value if isinstance(value, dict) else value
    place.write_text(json.dumps(record))
    with pytest.raises(DataError, match=says):
        merge_shards(table, out)


def test_more_shards_than_parts_leave_some_empty(table: Path, tmp_path: Path) -> None:
    assert {len(np.load(run(table, tmp_path / "out.npy", f"{n}/20"))) for n in range(1, 21)} == {0, 3, 4}


TEXTS = st.lists(st.text(max_size=3), max_size=40)


@given(TEXTS, st.integers(1, 9))
def test_parts_are_the_texts_and_their_ends(texts: list[str], most: int) -> None:
    cut = [*parts(texts, most)]
    assert [text for part in cut for text in part] == texts
    assert all(1 <= len(part) <= most for part in cut)
    assert ends_of(texts, most) == [sum(map(len, cut[: place + 1])) for place in range(len(cut))]


def test_long_inputs_have_large_parts_and_short_ones_many() -> None:
    ends = ends_of(["a"] * 400_000)
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    assert sizes[:32] == [1000] * 32
    assert sizes[-2] == 10_000
    assert len(ends_of(["a"] * 8_000)) == 8


@given(TEXTS.filter(bool), st.integers(1, 9), st.integers(1, 12))
def test_shards_are_whole_parts_one_behind_the_other(texts: list[str], most: int, of: int) -> None:
    ends = ends_of(texts, most)
    shares = [VectorShard(number, of).within(ends) for number in range(1, of + 1)]
    assert [start for start, _ in shares] == [0, *(end for _, end in shares[:-1])]
    assert shares[-1][1] == len(texts)
    assert all(end in (0, *ends) for share in shares for end in share)


def test_shards_are_of_like_size() -> None:
    ends = ends_of(["a"] * 400_000)
    sizes = [end - start for start, end in (VectorShard(number, 8).within(ends) for number in range(1, 9))]
    assert max(abs(size - 50_000) for size in sizes) <= 10_000


def test_names_of_shards(tmp_path: Path) -> None:
    assert VectorShard(2, 8).path(tmp_path / "v.parquet") == tmp_path / "v-2-of-8.npy"
    for name in (
        "v-1-of-2.npy",
        "v-2-of-2.npy.partial",
        "v-1-of-2.npy.run.json",
        "w-1-of-3.npy",
        "v-2-of-3.txt",
    ):
        (tmp_path / name).touch()
    assert shards_beside(tmp_path / "v.npy") == [VectorShard(1, 2), VectorShard(2, 2)]


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2/3", "-1/2", "", "٢/8"])
def test_shards_are_named_by_number_and_total(text: str) -> None:
    assert (VectorShard.named("2/8"), str(VectorShard(2, 8))) == (VectorShard(2, 8), "2/8")
    with pytest.raises(ConfigError, match="expected I/N with I from 1 to N, such as 2/8"):
        VectorShard.named(text)
