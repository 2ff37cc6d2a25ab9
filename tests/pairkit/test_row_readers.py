"""Readers of rows and texts, which training, encoding and labelling use, and their limits."""

import io
import json
import stat
import struct

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aoe_train.encoding.source import open_source
from aoe_train.searching.index_rows import read_rows as read_index_rows
from llm_labeler.dataset.texts import read_values
from pairkit import DataError, read
from pairkit.dataset.labels import LabelRules, label_rules
from pairkit.dataset.reading import tables, untrusted_tables
from pairkit.dataset.reading.reader import read_rows, split_names
from pairkit.dataset.reading.separated import records
from pairkit.dataset.reading.tables import read_table, table_rows
from pairkit.dataset.reading.untrusted_tables import ParquetBatches
from pairkit.dataset.table_files import stream_parquet, write_parquet
from tests.pairkit.peak import peak_mib
from tests.pairkit.test_tables import ROWS, SAME, put, spreadsheet
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    parametrize,
    raises,
    table,
    values,
)


@parametrize("case", SAME)
def test_the_same_rows_for_every_reader(tmp_path, case):
    path, first = put(tmp_path, *SAME[case]), [text for text, *_ in ROWS]
    assert [row["text1"] for _, row in table_rows(path)] == first
    assert [value for _, _, value in read_values(path, {"text": "text1"})] == first
    assert read_index_rows(path, {"text": "text1"}).texts == first


def test_sheets_by_name(tmp_path, monkeypatch):
    pytest.importorskip("fastexcel")
    path = spreadsheet(
        tmp_path / "a.xlsx", {"A": [("text",)], "B": [("text",), ("x",)]}
    )
    assert [*table_rows(tmp_path / "a.xlsx:B")] == [(2, {"text": "x"})]
    assert [*read_values(f"{path}:B", None)] == [(f"{path}:B", 2, "x")]
    assert read_index_rows(f"{path}:B").texts == ["x"]
    sheet = open_source(tmp_path / "a.xlsx:B")
    assert (sheet.path, [*sheet.values()]) == (path, [(2, "x")])
    monkeypatch.setattr(untrusted_tables, "FREE_BYTES", 0)
    monkeypatch.setattr(untrusted_tables, "MAX_RATIO", 0)
    with data_error("more than 0 times its size"):
        read_table(path)


def test_blank_lines_of_a_text_file_are_left_out(tmp_path, caplog):
    path = put(tmp_path, "a.txt", b"one\n\n two\n\n")
    assert [*open_source(path).values()] == [(1, "one"), (3, " two")]
    assert "blank lines left out: 2" in caplog.text
    for source in (path, ["one", "", " two", ""]):
        assert read_rows(source)["train"]["text"].to_list() == ["one", " two"]


def test_lists_of_positives():
    rows = [
        {"query": "q", "pos": ["a", "b"], "neg": ["c"], "pos_scores": [0.9, 0.8]},
        {"query": "r", "pos": [], "neg": ["d"], "pos_scores": []},
        {"query": "s", "pos": ["e"], "neg": ["f", ""], "pos_scores": [0.5]},
    ]
    with data_error(r":2: positive is empty"):
        read_rows(rows)
    skip = label_rules(None, None, "skip")
    found = read_rows(rows, rules=skip)
    assert found["train"].rows() == values("""
        q | a | ['c']
        q | b | ['c']
        s | e | ['f']
    """)
    assert [found.place("train", row).rpartition(":")[2] for row in range(3)] == [
        "1",
        "1",
        "3",
    ]
    pairs = read(rows, bad_rows="skip")["train"].select("text1", "text2", "label")
    assert pairs.rows() == values("""
        q | a | 1
        q | b | 1
        q | c | 0
        s | e | 1
        s | f | 0
    """)


def test_single_texts(tmp_path):
    lone = put(tmp_path, "a.csv", b"sentence\none\n")
    for source in (lone, pl.Series(["one"])):
        assert read_rows(source)["train"].to_dicts() == [{"text": "one"}]
    with_missing = pytest.importorskip("pandas").Series(["one", None])
    for source in (with_missing, [None, "one"], pl.Series(["one", None])):
        found = read_rows(source, rules=LabelRules(bad_rows="skip"))
        assert found["train"].to_dicts() == [{"text": "one"}]
        assert found.bad_rows["reason"].to_list() == ["empty_text"]
    titles = put(tmp_path, "b.csv", b"id,title\n1,one\n")
    found = read_rows(titles, columns={"text": "title"})
    assert (found["train"].to_dicts(), found.place("train", 0)) == (
        [{"text": "one"}],
        f"{titles}:2",
    )
    with data_error("found the columns id, title"):
        read_rows(titles)
    with data_error(r"or give columns=\{'text': 'text'\}"):
        read_rows(put(tmp_path, "c.csv", b"intent,text\nx,one\n"))
    with config_error("perhaps negatives, or only text; found text1"):
        read_rows(titles, columns={"text1": "title"})


SAID = """
    ["The login page stays blank.", "Exports of tables are empty.", "Mails arrive on Sundays."]
"""
TICKETS = """
    {"id": ["AB-1", "AB-2", "AB-3"], "status": ["open", "closed", "open"], "note": SAID}
"""


@each_line("""
    source, means, proposed
    TICKETS | rows | text=note
    TICKETS | pairs | text1=NAME,text2=NAME,label=NAME
    TICKETS | pairs or groups | text1=NAME,text2=NAME,label=NAME
    {"said": SAID, "intent": [1, 2, 1]} | pairs or groups | text=said,group=intent
    {"text": SAID, "label": ["Login", "Export", "Mail"]} | pairs or groups | text=text,group=label
    {"said": SAID, "intent": ["Login", "Export", "Mail"]} | rows | text=said
    {"said": SAID, "intent": ["All lost cards", "All lost cards", "All lost cards"]} | rows | text=said
    {"Satz A": SAID, "Satz B": SAID, "Note": [1, 0, 1]} | rows | text1=Satz A,text2=Satz B,label=Note
    {"Satz A": SAID, "Satz B": SAID, "Note": [1, 0, 1]} | texts | text=Satz A
    {"s1": SAID, "s2": TWICE, "n": [1, 0, 1]} | rows | text1=s1,text2=s2,label=n
    {"q": SAID, "passt": SAID, "nein": ["Danke.", "Bitte.", "Gern."]} | pairs | anchor=q,positive=passt,negative=nein
    {"link": ["https://a.org/LONG/1", "https://a.org/LONG/2", "https://a.org/LONG/3"], "note": SAID} | rows | text=note
    {"Erstellt": ["3. Mai 2024", "3. Mai 2024"], "Notiz": ["Es geht.", "Gut."]} | rows | text=Notiz
    {"编号": [1, 2, 3], "内容": ["登录页面打不开", "导出是空的", "邮件没有到"]} | rows | text=内容
    {"a": [1, 2], "b": ["1.5", "2024-01-02 10:00"]} | rows | text=NAME
""")
def test_proposed_columns(source, means, proposed):
    twice = json.dumps([f"{said} {said}" for said in json.loads(SAID)])
    named = {"TICKETS": TICKETS, "SAID": SAID, "TWICE": twice, "LONG": "a" * 99}
    for name, content in named.items():
        source = source.replace(name, content)
    with raises(DataError) as raised:
        read_rows(json.loads(source), meant=means)
    roles = dict(part.split("=") for part in proposed.split(","))
    assert f"give columns={roles}, with" in str(raised.value)


def test_text_files(tmp_path, caplog):
    path = put(tmp_path, "dev.txt", "one\x0c\u2028\ttwo\r\n\nthree\n".encode())
    found = read_rows(path, rules=label_rules(None, None, "skip"))
    assert found["validation"]["text"].to_list() == ["one\x0c\u2028\ttwo", "three"]
    assert found.bad_rows.select("row", "reason").rows() == [(2, "empty_text")]
    assert split_names(path) == ["validation"]
    speech = read_rows(put(tmp_path, "a.tsv", b'text\n"I came.\nI saw."\n'))
    assert speech["train"]["text"].to_list() == ['"I came.', 'I saw."']
    read_rows(put(tmp_path, "table.txt", b"a\tb\t1\nc\td\t0\n"))
    assert "table.txt: each line is read as one text; name it .tsv" in caplog.text


@table("""
    llms, count
    [['chatgpt'], ['llama', 'chatgpt'], [], None] | 2
    # as in CSV
    ['["wordnet"]', '[]', '', None] | 1
    [1, 2, 3, 4] | 0
""")
def test_rows_with_generated_texts(llms, count):
    rows = pl.DataFrame({"text": ["a"] * 4, "llms": llms, "prompt_hashes": [["x"]] * 4})
    columns = {"text": "text"}
    assert read_rows(rows, columns=columns).written == {"train": count}
    # Another column.
    assert read_rows(rows.drop("prompt_hashes"), columns=columns).written == {
        "train": 0
    }


MANY = pl.DataFrame(
    {
        "text1": [f"some words {n}" for n in range(3000)],
        "label": [n % 2 for n in range(3000)],
        "more": [[1, 2], [], None] * 1000,
    }
)


@parametrize("codec", ["zstd", "snappy", "none", "gzip"])
@parametrize("version", ["1.0", "2.0"])
@parametrize("dictionary", [True, False])
def test_valid_files(tmp_path, codec, version, dictionary):
    path = tmp_path / "a.parquet"
    how = {
        "compression": codec,
        "data_page_version": version,
        "use_dictionary": dictionary,
    }
    pq.write_table(
        MANY.to_arrow(), path, row_group_size=700, data_page_size=2000, **how
    )
    assert read_table(path).equals(MANY)
    packed = codec if codec == "zstd" else "lz4" if codec == "gzip" else None
    (tmp_path / "a.arrow").write_bytes(stream(MANY, compression=packed))
    assert read_table(tmp_path / "a.arrow").equals(MANY)
    MANY.clear().write_parquet(path)
    assert read_table(path).equals(MANY.clear())


@parametrize(
    "columns, says",
    [
        ({"text1": ["a"] * 200_000}, "has more than"),
        ({"text1": ["a"], "x": [[7] * 50_000]}, "has more than"),
        ({"text1": ["a" * 5_000_000]}, "decompresses to more than 200 times its size"),
        (
            {"text1": ["a" * 100_000] * 90},
            "decompresses to more than 200 times its size",
        ),
        (
            {"negatives": [["a" * 100_000]] * 90},
            "decompresses to more than 200 times its size",
        ),
        ({f"c{n}": [1] for n in range(60)}, "has more than 50 columns"),
    ],
)
def test_decompression_bombs(tmp_path, columns, says, monkeypatch):
    monkeypatch.setattr(untrusted_tables, "FREE_VALUES", 1000)
    monkeypatch.setattr(untrusted_tables, "MAX_COLUMNS", 50)
    monkeypatch.setattr(untrusted_tables, "FREE_BYTES", 1 << 20)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    with data_error(says):
        read_table(path)


@parametrize("name", ["a.parquet", "a.arrow"])
@parametrize("nested", [False, True])
def test_memory_for_a_repeated_long_text(tmp_path, name, nested):
    """An Arrow dictionary: 100 kB for each of 40,000 rows in a file of a few kB."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 40_000, pa.int32()), ["a" * 100_000]
    )
    column = (
        pa.ListArray.from_arrays(list(range(0, 40_001, 20)), texts) if nested else texts
    )
    rows, path = pa.table({"text1": column}), tmp_path / name
    if name == "a.parquet":
        pq.write_table(rows, path, compression="zstd")
    else:
        with pa.ipc.new_stream(path, rows.schema) as writer:
            writer.write_table(rows)
    imports = (
        "import pyarrow.parquet\nfrom pairkit.dataset.reading.tables import read_table"
    )
    says, mib = peak_mib(imports, "read_table(Path(sys.argv[1]))", path)
    assert "drop repeated texts" in says
    assert mib < 100  # 4 GB decompressed


def test_batch_size_with_repeated_long_texts(tmp_path):
    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 9_000, pa.int8()), ["x" * (900 << 10)]
    )
    pq.write_table(pa.table({"text": texts}), path)
    batches = ParquetBatches(path).read(["text"])
    assert 1000 < next(batches).num_rows < 1200


def test_too_many_distinct_keys(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(f'{{"text1": "a", "k{n}": 1}}' for n in range(300)))
    assert read_table(path).shape == (300, 301)
    monkeypatch.setattr(tables, "FREE_VALUES", 1000)
    with data_error("has 301 distinct keys in 300 lines"):
        read_table(path)
    path.write_text(
        "\n".join(f'{{"text1": {{"k{n}": [{{"x{n}": 1}}]}}}}' for n in range(300))
    )
    with data_error("distinct keys in 300 lines"):
        read_table(path)


def test_deeply_nested_json(tmp_path):
    """Polars takes gigabytes for one structure of 900 levels, or crashes."""
    path = tmp_path / "a.jsonl"
    for opening, closing in (('{"a":', "}"), ("[", "]")):
        path.write_text(f'{{"text1": {opening * 900}1{closing * 900}}}')
        with data_error("a.jsonl: has values of more than 30 levels"):
            read_table(path)


def stream(rows, **options):
    file = io.BytesIO()
    rows.write_ipc_stream(file, **options)
    return file.getvalue()


def test_rows_without_bytes(tmp_path):
    """A column of nulls has no bytes, so that its header may state any number of rows."""
    claimed, many = struct.pack("<q", 12_345), 1 << 40
    data = stream(
        pl.DataFrame({name: [None] * 12_345 for name in ("text1", "text2", "label")})
    )
    assert claimed in data
    path = tmp_path / "a.arrow"
    path.write_bytes(data.replace(claimed, struct.pack("<q", many)))
    with data_error(r"has more than|not readable as an Arrow stream"):
        read_table(path)


SCHEMA = {
    "name": pl.String,
    "llms": pl.List(pl.String),
    "votes": pl.List(pl.Struct({"judge": pl.String})),
}


def numbered(rows):
    return pl.DataFrame(
        [
            (f"row {n}", ["a", "b"][: n % 3], [{"judge": "x"}] * (n % 2))
            for n in range(rows)
        ],
        schema=SCHEMA,
        orient="row",
    )


@parametrize("rows", [0, 1, 20_000])
def test_stream_parquet(tmp_path, rows):
    one, other = tmp_path / "one.parquet", tmp_path / "deep/other.parquet"
    write_parquet(one, numbered(rows), private=True)
    stream_parquet(other, [numbered(0), numbered(rows)], SCHEMA)
    assert one.read_bytes() == other.read_bytes()
    assert stat.S_IMODE(one.stat().st_mode) == 0o600


def test_failed_write_keeps_the_old_file(tmp_path):
    def frames():
        yield numbered(20_000)
        raise DataError("damaged")

    path = tmp_path / "t.parquet"
    path.write_bytes(b"before")
    with data_error("damaged"):
        stream_parquet(path, frames(), SCHEMA)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("t.parquet", b"before")
    ]


def test_no_row_becomes_the_header_if_the_header_is_broken(tmp_path):
    faults = []
    path = put(tmp_path, "a.csv", b'"id"x,title\n1,2\n')
    assert [*records(path, faults.append)] == []
    assert len(faults) == 1
