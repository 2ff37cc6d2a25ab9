"""Encoding files of texts."""

import gzip
import io
import shutil
import tracemalloc
import zlib
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import aoe_train
from pairkit import DataError
from tests.aoe_train.tiny import (
    Recorded,
    edit,
    load,
    read_json,
    write_lines,
    write_rows,
)
from tests.support.shorthand import (
    config_error,
    data_error,
    input_error,
    parametrize,
    raises,
    table,
    values,
)

DIM = 32
PARTS = [1000, 1000, 300]  # texts that are encoded and stored together


class Fake(Recorded):
    """Vectors of a text's checksum that also contain the batch size, which may affect real models."""

    version = "1"

    def change(self, _, vectors):
        return vectors

    def identity(self):
        return {"weights": self.version}

    def encode(self, texts, **_):
        self.record(len(texts))
        vectors = np.zeros((len(texts), DIM), np.float32)
        for row, t in zip(vectors, texts, strict=True):
            row[:5] = zlib.crc32(t.encode()), len(t), ord(t[0]), ord(t[-1]), len(texts)
        return self.change(texts, vectors)


@pytest.fixture
def fake(bert):
    return Fake(bert)


def run(path, out, model, **options):
    return aoe_train.encode(path, model=model, out=out, **options)


@pytest.fixture
def lines(tmp_path):
    texts = (f"text {n} {'x' * (n % 7)}" for n in range(2300))
    return write_lines(tmp_path / "in.txt", texts)


def leftovers(out):
    names = (path.name for path in out.parent.iterdir())
    return sorted(name for name in names if name.startswith((out.name, f".{out.name}")))


def test_vectors_in_the_order_of_the_input(lines, tmp_path, fake):
    out, seen = tmp_path / "out.npy", []
    done = run(lines, out, fake, progress=lambda at: seen.append((at.done, at.total)))
    vectors = np.load(out)
    assert fake.calls == PARTS
    assert [at for at in seen if at[1]] == [
        (done, 2300) for done in (0, 1000, 2000, 2300)
    ]
    assert vectors.dtype == np.float32
    expected = fake.encode(lines.read_text().splitlines())
    assert np.array_equal(vectors[:, :4], expected[:, :4])
    assert leftovers(out) == ["out.npy", "out.npy.run.json"]
    assert (done.texts, done.dim, done.resumed) == (2300, DIM, 0)
    run(lines, tmp_path / "out.parquet", fake)
    assert pl.read_parquet(tmp_path / "out.parquet").columns == ["text", "vector"]


TABLE = pl.DataFrame(
    {
        "id": ["1", "2", "3"],
        "body": ["a b", 'said "so"', "é\u2028x"],
        "lang": ["en", "", "fr"],
    }
)
WRITERS = {
    ".csv.gz": lambda path: path.write_bytes(gzip.compress(TABLE.write_csv().encode())),
    ".tsv": lambda path: TABLE.write_csv(path, separator="\t", quote_style="never"),
    ".jsonl": TABLE.write_ndjson,
    ".parquet": TABLE.write_parquet,
}


@parametrize("kind", WRITERS)
def test_a_table_keeps_its_columns(tmp_path, kind, fake):
    path = tmp_path / f"in{kind}"
    WRITERS[kind](path)
    run(path, tmp_path / "out.parquet", fake, columns={"text": "body"})
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.drop("vector").equals(TABLE)
    assert found.schema["vector"] == pl.Array(pl.Float32, DIM)
    run(path, tmp_path / "out.npy", fake, columns={"text": "body"})
    for expected in (np.load(tmp_path / "out.npy"), fake.encode([*TABLE["body"]])):
        assert np.array_equal(found["vector"].to_numpy(), expected)


def test_json_rows_with_different_keys(tmp_path, fake):
    rows = [{"text": f"t{n}", "id": n} for n in range(5000)]
    last = {"text": "u", "id": 0.5, "tags": {"a": 1}}
    path = write_rows(tmp_path / "in.jsonl", [*rows, last])
    run(path, tmp_path / "out.parquet", fake)
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.height == 5001
    assert found.row(4999)[:3] == ("t4999", 4999.0, None)
    assert found.row(5000)[:3] == ("u", 0.5, {"a": 1})


def test_standard_input(lines, tmp_path, fake, monkeypatch):
    stdin = SimpleNamespace(buffer=io.BytesIO(lines.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    run("-", tmp_path / "piped.npy", fake)
    run(lines, tmp_path / "out.npy", fake)
    assert (tmp_path / "piped.npy").read_bytes() == (tmp_path / "out.npy").read_bytes()
    assert leftovers(tmp_path / "piped.npy") == ["piped.npy", "piped.npy.run.json"]


@given(
    stops=st.lists(st.integers(0, 2), max_size=4),
    suffix=st.sampled_from([".npy", ".parquet"]),
)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stopped_run_resumes_to_the_same_bytes(bert, tmp_path_factory, stops, suffix):
    folder = tmp_path_factory.mktemp("encode")
    whole, out = folder / f"whole{suffix}", folder / f"out{suffix}"
    texts = ("y" * (1 + n % 9) for n in range(2300))
    path = write_lines(folder / "in.txt", texts)
    run(path, whole, Fake(bert))
    done = 0
    for stop in stops:
        if done + 1000 * stop > 2000:
            break
        with raises(KeyboardInterrupt):
            run(path, out, Fake(bert, stop_before=stop))
        assert not out.exists()
        done += 1000 * stop
        # a kill within a write leaves more than the manifest has
        with (folder / f"{out.name}.partial" / "vectors.npy").open("ab") as file:
            file.write(b"half a vec")
    assert run(path, out, Fake(bert)).resumed == done
    assert out.read_bytes() == whole.read_bytes()
    assert leftovers(out) == [out.name, f"{out.name}.run.json"]


def test_other_settings_do_not_resume_a_run(lines, tmp_path, bert):
    out, other = tmp_path / "out.npy", Fake(bert)
    other.version = "2"
    with raises(KeyboardInterrupt):
        run(lines, out, Fake(bert, stop_before=1))
    with config_error(r"model\.weights \(1 there, 2 now\).*fresh=True"):
        run(lines, out, other)
    lines.write_text(lines.read_text() + "one more\n")
    with config_error(r"out\.npy\.partial: made from other inputs .*: input \("):
        run(lines, out, Fake(bert))
    assert run(lines, out, other, fresh=True).texts == 2301


@table(
    """
    given
    {'dim': 8}
    {'normalize': True}
    """,
)
def test_options_that_scale_a_truncated_vector_make_another_output(
    lines, tmp_path, bert, given
):
    model, out = load(bert, dim=8, normalize=True), tmp_path / "out.npy"
    run(lines, out, model)
    with config_error("other settings: truncated"):
        run(lines, out, model, **given)


def test_an_existing_output_is_replaced_only_with_fresh(lines, tmp_path, fake):
    out = tmp_path / "out.npy"
    out.write_text("precious")
    with config_error("already exists; give fresh=True"):
        run(lines, out, fake)
    with raises(DataError):  # nor if its replacement can't be made
        run(tmp_path / "none.txt", out, fake, fresh=True)
    assert out.read_text() == "precious"
    assert leftovers(out) == ["out.npy"]
    run(lines, out, fake, fresh=True)
    assert np.load(out).shape == (2300, DIM)
    out.write_text("another file of that name")
    with config_error("already exists; give fresh=True"):
        run(lines, out, fake)


@table(
    r"""
    name, data, message
    none.txt | b'' | has no rows; expected at least one
    short.txt.gz | SHORT | not readable
    blank.tsv | b'id\ttext\n1\ta\n2\t \n' | blank\.tsv:3: the text is empty
    unseen.csv | b'id,text\n1,a\n2,\xe2\x80\x8b\n' | unseen\.csv:3: the text is empty
    tags.txt | b'a\n<p></p>\n' | tags\.txt:2: the text is empty
    lacks.jsonl | b'{"text": "a"}\n{"id": 1}\n' | lacks\.jsonl:2: found no value in 'text'
    number.jsonl | b'{"text": "a"}\n{"text": 3}\n' | \.jsonl:2: found a value of type int in 'text'
    junk.parquet | b'PAR1 or not' | not readable as parquet
    """,
    SHORT=gzip.compress(b"a\nb\n" * 1000, mtime=0)[:-10],
)
def test_bad_inputs_are_refused_before_encoding(tmp_path, name, data, message, fake):
    (tmp_path / name).write_bytes(data)
    with data_error(message):
        run(tmp_path / name, tmp_path / "out.npy", fake)
    assert fake.calls == []
    assert leftovers(tmp_path / "out") == []


def test_invisible_lines_are_left_out(tmp_path, fake, caplog):
    path = write_lines(tmp_path / "in.txt", ["a", "\u200b", "\ufeff ", "b"])
    assert run(path, tmp_path / "out.npy", fake).texts == 2
    assert "blank lines left out: 2" in caplog.text


def test_columns_that_do_not_fit_into_a_table(tmp_path, fake):
    path, table = tmp_path / "in.jsonl", tmp_path / "in.parquet"
    for other in ('{"text": "b", "id": "x"}', '{"text": "b", "tags": {}}'):
        path.write_text('{"text": "a", "id": 1}\n' + other)
        with data_error("doesn't fit into Parquet"):
            run(path, tmp_path / "out.parquet", fake)
    assert fake.calls == []
    run(path, tmp_path / "out.npy", fake)
    path.write_text('{"text": "a", "vector": [1]}\n')
    with config_error("has a column 'vector' already"):
        run(path, tmp_path / "out.parquet", fake)
    for texts, message in values(r"""
            ['a', None] | in\.parquet:2: found no value in 'text'
            [] | has no rows
            """):
        pl.DataFrame({"text": texts}, schema={"text": pl.String}).write_parquet(table)
        with data_error(message):
            run(table, tmp_path / "table.npy", fake)


@table(
    r"""
    path, out, options, message
    in.txt | out.bin | {} | out\.bin: expected \.npy or \.parquet
    in.doc | out.npy | {} | in\.doc: unknown file type '\.doc'; give \.parquet
    in.txt | out.npy | {'columns': {'text': 'body'}} | columns={'text': 'body'}: .* has no columns
    in.txt | folder.npy | {} | is a folder; choose another out=
    folder.npy | out.npy | {} | is a folder; give one file
    no.txt | out.npy | {} | no such file
    in.txt | out.npy | {'columns': ['text']} | columns = \['text'\]: expected names
    in.txt | out.npy | {'prompt': ['a: ']} | prompt = \['a: '\]: expected text
    in.txt | out.npy | {'dim': 'wide'} | dim = 'wide': expected a whole number
    in.parquet | in.parquet | {'fresh': True} | in\.parquet: is the input
    """,
)
def test_a_bad_command(lines, path, out, options, message, fake):
    (lines.parent / "folder.npy").mkdir()
    (lines.parent / "in.doc").touch()
    TABLE.write_parquet(lines.parent / "in.parquet")
    with input_error(message):
        run(lines.parent / path, lines.parent / out, fake, **options)


def test_a_reranker_has_no_vectors(lines, tmp_path, bert):
    reranker = shutil.copytree(bert, tmp_path / "reranker")
    edit(reranker / "config.json", architectures=["BertForSequenceClassification"])
    with config_error(r"is a classifier or reranker, .* has no vectors of texts"):
        run(lines, tmp_path / "out.npy", reranker)
    assert load(reranker).dim  # as a backbone


def test_faults_during_encoding(lines, tmp_path, bert):
    nan, second, shrink = Fake(bert), Fake(bert), Fake(bert)
    nan.change = lambda texts, vectors: np.where(
        [[text.startswith("text 6 ")] for text in texts], np.nan, vectors
    )

    def start_again(_, vectors):
        with config_error("in use by another run"):
            run(lines, tmp_path / "one.npy", Fake(bert))
        return vectors

    def change_input(_, vectors):
        lines.write_text("gone\n")
        return vectors

    second.change, shrink.change = start_again, change_input
    with data_error(r"in\.txt:7: .*NaN"):
        run(lines, tmp_path / "nan.npy", nan)
    run(lines, tmp_path / "one.npy", second)
    lines.write_text(lines.read_text() * 10)  # more than is read ahead
    with data_error("was changed while being read"):
        run(lines, tmp_path / "out.npy", shrink)


def test_memory_does_not_grow_with_the_input(tmp_path, fake):
    def peak(texts):
        lines = (f"{n:0199d}" for n in range(texts))
        path = write_lines(tmp_path / f"{texts}.txt", lines)
        tracemalloc.start()
        run(path, tmp_path / f"{texts}.npy", fake, quantize="int8")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1_000)  # imports
    assert peak(16_000) < 1.2 * peak(4_000)


def test_ranges_of_a_calibration_set(lines, tmp_path, fake):
    out, ranges = tmp_path / "out.npy", np.float32([[0] * DIM, [1e9] * DIM])
    vectors = np.random.default_rng(0).normal(size=(50, DIM))
    np.save(tmp_path / "vectors.npy", vectors)
    for calibration, expected in (
        (ranges, ranges),
        (tmp_path / "vectors.npy", np.float32([vectors.min(0), vectors.max(0)])),
    ):
        run(lines, out, fake, quantize="int8", calibration=calibration, fresh=True)
        assert (
            np.float32(read_json(tmp_path / "out.npy.run.json")["ranges"]) == expected
        ).all()
    with data_error("int8 of vectors with NaN"):
        run(lines, out, fake, quantize="int8", calibration=ranges * np.nan)


@table(
    r"""
    given, message
    None | no such file
    b'no array' | give vectors in .npy
    b'\x93NUMPY\1\0\x0a\0{\'descr\': ' | give vectors in .npy
    WIDE | have 33 dimensions, expected 32
    INTEGERS | expected vectors .* of floats
    NANS | NaN
    SINGLE | int8 of 1 vector
    EMPTY | have 0 dimensions, expected 32
    """,
    WIDE=np.zeros((3, 33)),
    INTEGERS=np.zeros((3, 32), np.int8),
    NANS=np.full((3, 32), np.nan),
    SINGLE=np.zeros((1, 32)),
    EMPTY=np.zeros((3, 0)),
)
def test_invalid_calibration_sets(given, message, lines, tmp_path, fake):
    path = tmp_path / "given.npy"
    if isinstance(given, bytes):
        path.write_bytes(given)
    elif given is not None:
        np.save(path, given)
    with input_error(message):
        run(lines, tmp_path / "out.npy", fake, quantize="int8", calibration=path)
