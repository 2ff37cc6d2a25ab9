import io
import struct

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from pairkit import PairkitError
from tests.pairkit.test_tables import spreadsheet
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    parametrize,
    raises,
    table,
)

FRAME = pl.DataFrame(
    {
        "text1": [f"some words {n}" for n in range(30)],
        "text2": ["other words"] * 30,
        "label": [n % 2 for n in range(30)],
        "more": [[1, 2], []] * 15,
    }
)
FLAT = FRAME.drop("more").write_csv().encode()


def binary(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


FILES = {
    "a.parquet": binary(FRAME.write_parquet),
    "a.arrow": binary(FRAME.write_ipc_stream),
    "a.jsonl": FRAME.write_ndjson().encode(),
    "a.json": FRAME.write_json().encode(),
    "a.csv": FLAT,
    "a.tsv": FLAT.replace(b",", b"\t"),
}
PIECES = [
    b'"',
    b"{",
    b"[" * 99,
    b"\\ud800",
    b"\0",
    b"\n",
    b"1e999",
    b"9" * 30,
    b"null",
    b"\xff",
    b",,,",
    b"",
]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 30),
        st.sampled_from(PIECES) | st.binary(max_size=3),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25)
@given(CHANGES)
@parametrize("name", FILES)
def test_damaged_files_give_an_error_with_their_name(tmp_path_factory, name, changes):
    path, data = tmp_path_factory.getbasetemp() / name, bytearray(FILES[name])
    for place, taken, put in changes:
        start = int(place * len(data))
        data[start : start + taken] = put
    path.write_bytes(data)
    try:
        pairkit.read(path)
    except PairkitError as error:
        message = str(error)
        if not message.startswith(str(path)) or "\n" in message:
            pytest.fail(f"names no file, or has several lines: {message!r}")


FAR = "takes more memory or time than a file of this size may"
LOOP = struct.pack(
    "<Q16x5H10xI8xI", 0xE11AB1A1E011CFD0, 62, 3, 0xFFFE, 9, 6, 1, 4096
).ljust(4612, b"\0")


@table(
    """
        further, message
        <c r="XFD1048576"><v>1 | FAR
        <c r="ZZZZZZZ99999999999"><v>1 | not readable as a spreadsheet
        <c r="D2" t="s"><v>9 | not readable as a spreadsheet
        LOOP | FAR
        <c r="XFD2" t="str"><v> | None
    """,
    FAR=FAR,
    LOOP=LOOP,
)
def test_spreadsheets_that_abort_their_reader(tmp_path, further, message):
    pytest.importorskip("fastexcel")
    path = tmp_path / "a.xlsx"
    if isinstance(further, bytes):
        path.write_bytes(further)
    else:
        spreadsheet(
            path,
            {"A": [("text1", "text2", "label"), ("a", "b", f"1</v></c>{further}")]},
        )
    if message is None:
        assert pairkit.read(path)["train"].columns == ["text1", "text2", "label"]
        return
    with data_error(rf"a\.xlsx: .*{message}.*save it again as CSV$"):
        pairkit.read(path)


TWO_ROWS = "text1,text2,label\n{0},b,1\nc,d,0\n"


def put(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TWO_ROWS.format(path.stem))
    return folder


def found(source):
    """The files of each split, by the first text of each."""
    return {
        split: rows["text1"].to_list()[::2]
        for split, rows in pairkit.read(source).splits.items()
    }


def test_shards(tmp_path):
    put(tmp_path, "part-00001-ab1.c000.csv", "part-00000-ab1.c000.csv", "_SUCCESS")
    assert found(tmp_path) == {"train": ["part-00000-ab1.c000", "part-00001-ab1.c000"]}
    assert found(put(tmp_path / "test", "run.json.csv")) == {"train": ["run.json"]}
    put(tmp_path, "notes.csv")
    with data_error("no data files named after a split"):
        pairkit.read(tmp_path)


def test_glob_pattern(tmp_path):
    put(
        tmp_path,
        "a/one.csv",
        "b/two.csv",
        "b/three.md",
        "c/train-1.csv",
        "c/dev-1.csv",
        "c/other.csv",
        "e/f/g/four.csv",
    )
    assert found(f"{tmp_path}/[ab]/*") == {"train": ["one", "two"]}
    assert found(f"{tmp_path}/e/**/*.csv") == {"train": ["four"]}
    folder = put(tmp_path / "d", "train/0.csv", "test/1.csv")
    assert found(f"{folder}/*/*.csv") == {"train": ["0"], "test": ["1"]}
    assert found(tmp_path / "c" / "*-1.csv") == {
        "train": ["train-1"],
        "validation": ["dev-1"],
    }
    with data_error(
        r"matches dev-1\.csv, which is named after a split, and other\.csv"
    ):
        pairkit.read(f"{tmp_path}/c/*")
    with data_error("no table matches this pattern"):
        pairkit.read(f"{tmp_path}/b/*.md")


def test_file_name_that_looks_like_a_pattern(tmp_path):
    put(tmp_path, "a[1].csv", "a1.csv")
    assert found(tmp_path / "a[1].csv") == {"train": ["a[1]"]}
    with config_error("no such file or folder"):
        pairkit.read("nowhere")


SAVED = [
    {"text1": "a plane", "text2": "an aeroplane", "label": 1},
    {"text1": "b", "text2": "c", "label": 0},
]


@pytest.fixture
def saved(tmp_path):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list(SAVED)
    datasets.DatasetDict(
        test=table, validation=table.select([1]), train=table
    ).save_to_disk(tmp_path / "all")
    table.save_to_disk(tmp_path / "one", num_shards=2)
    return tmp_path


def test_all_splits_or_one(saved):
    pairs = pairkit.read(saved / "all")
    assert {name: frame.to_dicts() for name, frame in pairs.splits.items()} == {
        "train": SAVED,
        "validation": SAVED[1:],
        "test": SAVED,
    }
    assert pairs.label_kind == "binary"
    # Both files in order.
    assert pairkit.read(saved / "one")["train"].to_dicts() == SAVED
    assert pairkit.read(saved / "all" / "test")["train"].height == 2
    assert (
        pairkit.read(saved / "all" / "test" / "data-00000-of-00001.arrow")[
            "train"
        ].height
        == 2
    )


@each_line(r"""
    file, message, content
    dataset_dict.json | all/one/state\.json: no such file | {"splits": ["../../saved/one"]}
    dataset_dict.json | all/state\.json: no such file | {"splits": [".."]}
    dataset_dict.json | lists no data | {"splits": []}
    dataset_dict.json | expected one JSON object | []
    train/state.json | train/passwd: unknown file | {"_data_files": [{"filename": "/etc/passwd"}]}
    train/state.json | gone\.arrow: no such file | {"_data_files": [{"filename": "gone.arrow"}]}
    train/state.json | train/7: unknown file type | {"_data_files": [7]}
    train/state.json | selects rows by indices | {"_indices_data_files": [{"filename": "i.arrow"}]}
""")
def test_invalid_saved_datasets(saved, file, message, content):
    (saved / "all" / file).write_text(content)
    with raises(PairkitError, match=message):
        pairkit.read(saved / "all")
