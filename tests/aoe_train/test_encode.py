"""Encoding files of texts."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aoe_train import Encoded
from aoe_train.encoding.encode_run import encode_file
from aoe_train.encoding.source import parts
from aoe_train.encoding.vector_file import Quantization, read_ranges
from aoe_train.model.quantization import quantized, value_ranges
from pairkit import ConfigError, DataError

DIM = 5


class Fake:
    """Vectors of a text's checksum that also contain the batch size, which may affect real models."""

    def __init__(self, stop_before: int | None = None) -> None:
        self.calls: list[int] = []
        self.stop_before = stop_before

    def __call__(self, texts: list[str]) -> np.ndarray:
        if len(self.calls) == self.stop_before:
            raise KeyboardInterrupt
        self.calls.append(len(texts))
        rows = [(zlib.crc32(t.encode()), len(t), ord(t[0]), ord(t[-1]), len(texts)) for t in texts]
        return np.array(rows, np.float32)


def run(path: str | Path, out: Path, encode: Any = None, **given: Any) -> Encoded:
    """Encode, in parts of four texts by default."""
    how = {"settings": {"model": {"weights": "w"}}, "part_texts": 4, **given}
    return encode_file(path, out, partial(map, encode or Fake()), DIM, **how)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"text {number} {'x' * (number % 7)}\n" for number in range(10)))
    return path


def leftovers(out: Path) -> list[str]:
    names = (path.name for path in out.parent.iterdir())
    return sorted(name for name in names if name.startswith((out.name, f".{out.name}")))


def test_vectors_in_the_order_of_the_input(lines: Path, tmp_path: Path):
    out = tmp_path / "out.npy"
    encode, seen = Fake(), []
    done = run(lines, out, encode, advance=lambda *counts: seen.append(counts))
    vectors = np.load(out)
    texts = lines.read_text().splitlines()
    assert encode.calls == [4, 4, 2]
    assert seen == [(0, 10), (4, 10), (8, 10), (10, 10)]
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[:, :4], Fake()(texts)[:, :4])
    assert leftovers(out) == ["out.npy", "out.npy.run.json"]
    assert (done.texts, done.dim, done.resumed) == (10, DIM, 0)
    run(lines, tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["text", "vector"]


TABLE = pl.DataFrame(
    {"id": ["1", "2", "3"], "body": ["a b", 'said "so"', "é\u2028x"], "lang": ["en", "", "fr"]}
)


def table_file(folder: Path, kind: str) -> Path:
    path = folder / f"in{kind}"
    plain = kind.removesuffix(".gz")
    if plain == ".parquet":
        TABLE.write_parquet(path)
        return path
    text = {
        ".csv": TABLE.write_csv,
        ".tsv": lambda: TABLE.write_csv(separator="\t", quote_style="never"),
        ".jsonl": TABLE.write_ndjson,
    }[plain]()
    path.write_bytes(gzip.compress(text.encode()) if kind.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("kind", [".csv.gz", ".tsv", ".jsonl", ".parquet"])
def test_a_table_keeps_its_columns(tmp_path: Path, kind: str):
    path = table_file(tmp_path, kind)
    run(path, tmp_path / "out.parquet", columns={"text": "body"})
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.drop("vector").equals(TABLE)
    assert found.schema["vector"] == pl.Array(pl.Float32, DIM)
    run(path, tmp_path / "out.npy", columns={"text": "body"})
    assert np.array_equal(found["vector"].to_numpy(), np.load(tmp_path / "out.npy"))
    assert np.array_equal(found["vector"].to_numpy(), Fake()(TABLE["body"].to_list()))


def test_json_rows_with_different_keys(tmp_path: Path):
    rows = [{"text": f"t{n}", "id": n} for n in range(5000)] + [{"text": "u", "id": 0.5, "tags": {"a": 1}}]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(path, tmp_path / "out.parquet", part_texts=5000)
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.height == 5001
    assert found.row(4999)[:3] == ("t4999", 4999.0, None)
    assert found.row(5000)[:3] == ("u", 0.5, {"a": 1})


def test_standard_input(lines: Path, tmp_path: Path, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(lines.read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    run("-", tmp_path / "piped.npy")
    run(lines, tmp_path / "out.npy")
    assert (tmp_path / "piped.npy").read_bytes() == (tmp_path / "out.npy").read_bytes()
    assert leftovers(tmp_path / "piped.npy") == ["piped.npy", "piped.npy.run.json"]


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=30),
    stops=st.lists(st.integers(0, 3), max_size=4),
    suffix=st.sampled_from([".npy", ".parquet"]),
)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stopped_run_resumes_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], stops: list[int], suffix: str
):
    folder = tmp_path_factory.mktemp("encode")
    path, whole, out = folder / "in.txt", folder / f"whole{suffix}", folder / f"out{suffix}"
    path.write_text("\n".join("y" * length for length in lengths))
    run(path, whole)
    done = 0
    for stop in stops:
        try:
            run(path, out, Fake(stop_before=stop), fresh=out.exists())
            done = 0
        except KeyboardInterrupt:
            assert not out.exists()
            done += 4 * stop
            # a kill within a write leaves more than the manifest has
            with (folder / f"{out.name}.partial" / "vectors.npy").open("ab") as file:
                file.write(b"half a vec")
    if not out.exists():
        assert run(path, out).resumed == done
    assert out.read_bytes() == whole.read_bytes()
    assert leftovers(out) == [out.name, f"{out.name}.run.json"]


def test_a_kill_before_the_cleanup_counts_as_finished(lines: Path, tmp_path: Path, monkeypatch):
    def kill(partial: object) -> None:
        raise KeyboardInterrupt

    out, removed = tmp_path / "out.npy", tmp_path / "removed.npy"
    with monkeypatch.context() as patch:
        patch.setattr("aoe_train.encoding.vector_file.PartialOutput.end", kill)
        for path in (out, removed):
            with pytest.raises(KeyboardInterrupt):
                run(lines, path)
    assert leftovers(out) == ["out.npy", "out.npy.partial", "out.npy.run.json"]
    removed.unlink()
    assert run(lines, out).resumed == 10
    assert leftovers(out) == ["out.npy", "out.npy.run.json"]
    assert run(lines, removed).resumed == 0


def test_other_settings_do_not_resume_a_run(lines: Path, tmp_path: Path):
    out = tmp_path / "out.npy"
    with pytest.raises(KeyboardInterrupt):
        run(lines, out, Fake(stop_before=1))
    other = {"model": {"weights": "v"}}
    with pytest.raises(ConfigError, match=r"model\.weights \(w there, v now\).*fresh=True"):
        run(lines, out, settings=other)
    lines.write_text(lines.read_text() + "one more\n")
    with pytest.raises(ConfigError, match=r"differs in input \("):
        run(lines, out)
    assert run(lines, out, settings=other, fresh=True).texts == 11


def test_an_existing_output_is_replaced_only_with_fresh(lines: Path, tmp_path: Path):
    out = tmp_path / "out.npy"
    out.write_text("precious")
    with pytest.raises(ConfigError, match="already exists; give fresh=True"):
        run(lines, out)
    # nor if what is to replace it can't be made
    with pytest.raises(DataError):
        run(tmp_path / "none.txt", out, fresh=True)
    assert out.read_text() == "precious"
    assert leftovers(out) == ["out.npy"]
    run(lines, out, fresh=True)
    assert np.load(out).shape == (10, DIM)
    out.write_text("another file of that name")
    with pytest.raises(ConfigError, match="already exists; give fresh=True"):
        run(lines, out)


BAD = {
    "none.txt": (b"", "has no rows; expected at least one"),
    "latin.txt": (b"a\nna\x8fve\n", r"latin\.txt:2: neither UTF-8 nor Windows-1252"),
    "plain.txt.gz": (b"not gzip", "not readable"),
    "short.txt.gz": (gzip.compress(b"a\nb\n" * 1000)[:-10], "not readable"),
    "names.csv": (
        b"title,body\na,b\n",
        "no known text column among title, body.* columns={'text': 'title'}",
    ),
    "ragged.csv": (b"id,text\n1,a\n2,b,c\n", r"ragged\.csv:3: 3 cells, expected 2"),
    "quote.csv": (b'id,text\n1,a\n2,"b\n', r"quote\.csv:3: a quotation mark opens a cell"),
    "header.csv": (b"text\n", "has no rows; expected at least one"),
    "blank.tsv": (b"id\ttext\n1\ta\n2\t \n", r"blank\.tsv:3: the text is empty"),
    "broken.jsonl": (b'{"text": "a"}\n{"text": \n', r"broken\.jsonl:2: not JSON"),
    "list.jsonl": (b'["a"]\n', r"list\.jsonl:1: list, expected a JSON object"),
    "lacks.jsonl": (b'{"text": "a"}\n{"id": 1}\n', r"lacks\.jsonl:2: found no value in 'text'"),
    "number.jsonl": (
        b'{"text": "a"}\n{"text": 3}\n',
        r"number\.jsonl:2: found a value of type int in 'text'",
    ),
    "half.jsonl": (b'{"text": "a"}\n{"text": "\\ud83d"}\n', r"half\.jsonl:2: not JSON"),
    "junk.parquet": (b"PAR1 or not", "not readable as parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_inputs_are_refused_before_encoding(tmp_path: Path, name: str):
    data, says = BAD[name]
    (tmp_path / name).write_bytes(data)
    encode = Fake()
    with pytest.raises(DataError, match=says):
        run(tmp_path / name, tmp_path / "out.npy", encode)
    assert encode.calls == []
    assert leftovers(tmp_path / "out") == []


def test_columns_that_do_not_fit_into_a_table(tmp_path: Path):
    path, table = tmp_path / "in.jsonl", tmp_path / "in.parquet"
    path.write_text('{"text": "a", "id": 1}\n{"text": "b", "id": "x"}\n')
    with pytest.raises(DataError, match="no common type"):
        run(path, tmp_path / "out.parquet")
    run(path, tmp_path / "out.npy")
    path.write_text('{"text": "a", "vector": [1]}\n')
    with pytest.raises(ConfigError, match="has a column 'vector' already"):
        run(path, tmp_path / "out.parquet")
    for texts, words in ((["a", None], r"in\.parquet:2: found no value in 'text'"), ([], "has no rows")):
        pl.DataFrame({"text": texts}, schema={"text": pl.String}).write_parquet(table)
        with pytest.raises(DataError, match=words):
            run(table, tmp_path / "table.npy")


@pytest.mark.parametrize(
    ("path", "out", "kwargs", "says"),
    [
        ("in.txt", "out.bin", {}, r"out\.bin: expected \.npy or \.parquet"),
        ("in.doc", "out.npy", {}, r"in\.doc: unknown file type '\.doc'; give \.parquet"),
        ("in.txt", "out.npy", {"columns": {"text": "body"}}, "columns={'text': 'body'}: .* has no columns"),
        ("in.txt", "folder.npy", {}, "is a folder"),
    ],
)
def test_a_bad_command(lines: Path, path: str, out: str, kwargs: dict[str, Any], says: str):
    (lines.parent / "folder.npy").mkdir()
    with pytest.raises(ConfigError, match=says):
        run(lines.parent / path, lines.parent / out, **kwargs)


def test_faults_during_encoding(lines: Path, tmp_path: Path):
    def no_number(texts: list[str]) -> np.ndarray:
        return np.where([[text.startswith("text 6")] for text in texts], np.nan, Fake()(texts))

    def second(texts: list[str]) -> np.ndarray:
        with pytest.raises(ConfigError, match="in use by another run"):
            run(lines, tmp_path / "one.npy")
        return Fake()(texts)

    def shrink(texts: list[str]) -> np.ndarray:
        lines.write_text("gone\n")
        return Fake()(texts)

    with pytest.raises(DataError, match=r"in\.txt:7: .*NaN"):
        run(lines, tmp_path / "nan.npy", no_number)
    run(lines, tmp_path / "one.npy", second)
    lines.write_text(lines.read_text() * 1000)  # more than is read ahead
    with pytest.raises(DataError, match="was changed while being read"):
        run(lines, tmp_path / "out.npy", shrink, part_texts=1000)


@pytest.mark.parametrize("quantize", ["float32", "int8"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, quantize: Any):
    def ones(texts: list[str]) -> np.ndarray:
        return np.ones((len(texts), 64), np.float32)

    def peak(texts: int) -> int:
        path = tmp_path / f"{texts}.txt"
        path.write_text("".join(f"{number:0199d}\n" for number in range(texts)))
        how: dict[str, Any] = {"part_texts": 800, "quantization": Quantization(quantize)}
        tracemalloc.start()
        encode_file(path, tmp_path / f"{texts}.npy", partial(map, ones), 64, {}, **how)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(16_000) < 1.2 * peak(4_000)


def test_sizes_of_parts(tmp_path: Path, monkeypatch):
    sizes = [len(part) for part in parts(iter(["a"] * 400_000))]
    assert (sizes[0], max(sizes), sum(sizes)) == (1_000, 10_000, 400_000)
    assert sizes[:-1] == sorted(sizes[:-1])
    monkeypatch.setattr("aoe_train.encoding.source.MAX_CHARACTERS", 100)
    (tmp_path / "in.txt").write_text("\n".join("z" * length for length in (60, 60, 10, 200, 5)))
    encode = Fake()
    run(tmp_path / "in.txt", tmp_path / "out.npy", encode)
    assert encode.calls == [2, 2, 1]


def test_the_record_contains_int8_ranges(lines: Path, tmp_path: Path):
    out, given = tmp_path / "out.npy", np.array([[0] * DIM, [1e9] * DIM], np.float32)

    def record(path: Path) -> dict[str, Any]:
        return json.loads(path.with_name(f"{path.name}.run.json").read_text())

    assert run(lines, out, quantization=Quantization("int8")).quantize == "int8"
    floats = Fake()(lines.read_text().splitlines())
    assert np.load(out)[:, 3].tolist() == quantized(floats, "int8")[:, 3].tolist()
    assert (record(out)["quantize"], record(out)["dim"]) == ("int8", DIM)
    run(lines, out, quantization=Quantization("int8", given), fresh=True)
    assert record(out)["ranges"] == given.tolist()
    with pytest.raises(ConfigError, match="settings: calibration"):
        run(lines, out, quantization=Quantization("int8"))
    vectors = np.random.default_rng(0).normal(size=(5000, DIM)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    assert (read_ranges(tmp_path / "vectors.npy", DIM) == value_ranges([vectors])).all()
    run(lines, tmp_path / "out.parquet", quantization=Quantization("int8"))
    expected = np.array(record(tmp_path / "out.parquet")["ranges"], np.float32)
    assert (read_ranges(tmp_path / "out.parquet", DIM) == expected).all()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (np.zeros((3, DIM + 1), np.float32), "have 6 dimensions, expected 5"),
        (np.zeros((3, DIM), np.int8), "expected vectors .* of floats"),
        (np.full((3, DIM), np.nan, np.float32), "NaN"),
        (np.zeros((1, DIM), np.float32), "int8 of 1 vector"),
        (b"no array", "expected vectors in .npy"),
        (None, "no such file"),
    ],
)
def test_invalid_calibration_sets(made: Any, message: str, tmp_path: Path):
    path = tmp_path / "given.npy"
    if isinstance(made, bytes):
        path.write_bytes(made)
    elif made is not None:
        np.save(path, made)
    with pytest.raises((ConfigError, DataError), match=message):
        read_ranges(path, DIM)
