"""Tables as people save them: what each file has, or the message that names the row and a remedy."""

import gzip
import json
import zipfile

import polars as pl
import pytest

import pairkit
from pairkit import PairkitError
from pairkit.dataset.reading.in_memory import tables_in_memory
from tests.support.shorthand import (
    approx,
    data_error,
    parametrize,
    raises,
    table,
    text_table,
)

HEAD = "text1,text2,label\n"
ROWS = [("Grüße, Bob", "Hallo", 1), ("A dog", "A cat", 0)]
PLAIN = HEAD + '"Grüße, Bob",Hallo,1\nA dog,A cat,0\n'
SEMICOLONS = PLAIN.replace(",", ";").replace('"Grüße; Bob"', "Grüße, Bob")
OBJECTS = [dict(zip(("text1", "text2", "label"), row, strict=True)) for row in ROWS]
QUOTED = pl.DataFrame(OBJECTS).write_csv(separator="\t", quote_style="always")
AS_IS = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in OBJECTS)
LINES = "".join(json.dumps(row) + "\n" for row in OBJECTS)

CSV = {
    "UTF-8": PLAIN,
    "Excel's CSV UTF-8": SEMICOLONS.encode("utf-8-sig").replace(b"\n", b"\r\n"),
    "Excel's CSV": SEMICOLONS.encode("cp1252"),
    "Excel's Unicode text": SEMICOLONS.replace(";", "\t").encode("utf-16"),
    "a byte order mark before cp1252": b"\xef\xbb\xbf" + PLAIN.encode("cp1252"),
    "a hint of Excel": f"sep=;\n{SEMICOLONS}",
    "a quoted hint": f'"sep=;"\n{SEMICOLONS}',
    "blank lines above the header": f"\n \n{SEMICOLONS}",
    "bars": SEMICOLONS.replace(";", "|"),
    "line ends of Macintosh": PLAIN.replace("\n", "\r"),
    "doubled carriage returns": PLAIN.replace("\n", "\r\r\n"),
    "blanks around names": PLAIN.replace(HEAD, " text1 ,text2\t,\u200blabel\ufeff\n"),
    "blanks after separators": PLAIN.replace(",", ", ").replace("ße,  ", "ße, "),
    "blank rows at the end": f"{PLAIN}\n,,\n \n",
    "a separator after each row": PLAIN.replace("\n", ",\n"),
    "a separator after rows only": PLAIN.replace("1\n", "1,\n").replace("0\n", "0,,\n"),
    "an index of pandas": ("," + PLAIN.replace("\nA", "\n5,A").replace('\n"', '\n4,"')),
    "thousands of columns": (
        HEAD[:-1] + "".join(f",c{n}" for n in range(3000)) + PLAIN[len(HEAD) - 1 :]
    ),
}
SAME = {case: ("a.csv", content) for case, content in CSV.items()} | {
    "UTF-16 of Java": (
        "a.csv.gz",
        gzip.compress(b"\xfe\xff" + PLAIN.encode("utf-16-be")),
    ),
    "a hint in TSV": ("a.tsv", CSV["a hint of Excel"]),
    "all cells in quotes": ("a.tsv", QUOTED),
    "JSON lines": ("a.jsonl", LINES),
    "JSON lines of Windows PowerShell": (
        "a.ndjson",
        LINES.replace("\n", "\r\n").encode("utf-16"),
    ),
    "JSON lines in cp1252": ("a.jsonl", AS_IS.encode("cp1252")),
    "compressed JSON lines": ("a.jsonl.gz", gzip.compress(LINES.encode())),
    "JSON lines of datasets": ("a.json", LINES),
    "an array": ("a.json", json.dumps(OBJECTS).encode("utf-8-sig")),
    "an array in an object": (
        "a.json",
        json.dumps({"n": 1, "data": OBJECTS}, indent=1).encode("utf-16"),
    ),
    "the only array of objects": (
        "a.json",
        json.dumps({"ids": [1], "messages": OBJECTS}),
    ),
}


def put(folder, name, data):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@parametrize("case", SAME)
def test_the_same_rows(tmp_path, case):
    pairs = pairkit.read(put(tmp_path, *SAME[case]))["train"]
    assert pairs.select("text1", "text2", "label").rows() == ROWS


def test_blank_rows_are_ignored_but_counted_as_rows(tmp_path):
    path = put(tmp_path, "a.csv", HEAD + "a,b,1\n\n,,\nc,d,0\n")
    assert pairkit.read(path)["train"]["text1"].to_list() == ["a", "c"]
    path.write_text(HEAD + "a,b,1\n\n,,\nc,,0\n")
    with data_error(r"a\.csv:5: text2 is empty"):
        pairkit.read(path)


TEXTS = {
    "line breaks and quotation marks in a cell": (
        "a.csv",
        'text,n\n"a\r\n""b""\n",1\n',
        ['a\r\n"b"\n'],
    ),
    "an inch mark": ("a.csv", 'text,n\n5" pipe,1\n', ['5" pipe']),
    "a carriage return in a cell": ("a.csv", 'text,n\n"a\rb",1\n', ["a\rb"]),
    "a NUL": ("a.csv", "text,n\na\0b,1\n", ["a\0b"]),
    "typographic quotation marks": ("a.csv", "text,n\n“a” b,1\n", ["“a” b"]),
    "plain quotation marks in TSV": (
        "a.tsv",
        'text\tn\n"a" b\t1\n"c\t2\n',
        ['"a" b', '"c'],
    ),
    "plain quotation marks between tabs in CSV": (
        "a.csv",
        'text\tn\n"a" b\t1\n"c\t2\n',
        ['"a" b', '"c'],
    ),
    "texts in quotation marks in TSV": ("a.tsv", 'text\tn\n"Yes."\t1\n', ['"Yes."']),
    "quotes only where TSV needs them": (
        "a.tsv",
        'text\tn\n"a ""b"""\t1\nc\t2\n',
        ['a "b"', "c"],
    ),
    "direct speech over two rows of TSV": (
        "a.tsv",
        'text\tn\n"I came.\t0\nI saw."\t1\n\n',
        ['"I came.', 'I saw."'],
    ),
    "two columns of one name": ("a.csv", "text,text,n\na,b,c\n", ["a"]),
    "half of a surrogate pair": (
        "a.json",
        '[{"text": "a\\ud83d\\ude00", "n": 1}]',
        ["a\U0001f600"],
    ),
    "thousands of empty columns": (
        "a.csv",
        f"text,n{',' * 99_999}\na,1{',' * 99_999}\n",
        ["a"],
    ),
    "a list of positives": ("a.csv", 'text,n\na,"[""b"", ""c""]"\n', ["a", "a"]),
    "numbers and texts": (
        "a.jsonl",
        '{"text": 7, "n": 1}\n{"text": "b", "n": 2}\n',
        ["7", "b"],
    ),
}


@parametrize("case", TEXTS)
def test_texts_do_not_change(tmp_path, case):
    name, content, texts = TEXTS[case]
    read = pairkit.read(
        put(tmp_path, name, content),
        columns={"anchor": "text", "positive": "n"},
    )
    assert read["train"]["text1"].to_list() == texts


@parametrize(
    "name, message, content",
    [
        *text_table(r"""
        a.csv | :2: text after a quoted cell; .* as "", not as \\" | HEAD"He said \"yes\"",b,1\n
        a.csv | :3: 5 cells, expected 3, .* quote texts with ',' | HEADa,b,1\nc, d,1,,e\n
        a.csv | :3: lines 3 to 4: a quotation mark opens a cell | HEADa,b,1\n"c,d,0\ne,f,1\n
        a.csv | :3: repeats the first row | HEADa,b,1\nHEAD
        a.csv | :2: 3 cells, .*',', or delete rows above the header | Export of May\nHEAD
        a.csv | : found the columns x, y, .*\{'anchor': 'NAME', 'positive': 'NAME'\} | x,y\nA text.,label\n
        a.csv | :3: text1 is empty; fill it, .*bad_rows='skip' | HEADa,b,1\n ,b,1\n
        a.csv | : is empty; expected a line |
        a.txt | : unknown file type '\.txt'; .* name a table in a text file \.csv |
        a.csv | : found the columns text1, Text 2, label, expected | text1 ,Text 2,label\na,b,1\n
        a.csv | :2: text2 is '#N/A', so missing; .*bad_rows='skip' | HEADa,#N/A,1\n
        a.jsonl | :1: label nan is missing | {"text1": "a", "text2": "b", "label": NaN}\n
        a.jsonl | :3: not JSON | LINES{"text1": "a"\n
        a.jsonl | :3: the column text1 has lists or structures | LINES{"text1": ["a"], "text2": "b", "label": 1}\n
        a.jsonl | :3: not JSON .lone surrogate | LINES{"text1": "\ud83d x", "text2": "b"}\n
        # Python 3.13 names the comma.
        a.json | :[23]: not JSON | [\n{"text1": "a"},\n]
        a.json | : found an object with the keys text1; expected an array of rows | {"text1": "a"}
        a.json | : found an object with the keys a, b; expected an array | {"a": [{}], "b": [{}]}
        a.json | : not readable as json .*surrogates | [{"text1": "\ud800", "text2": "b", "label": 1}]
        a.json | : found an object .* pandas: orient='records' | {"text1": {"0": "a"}}
        a.jsonl | :1: list, expected a JSON object, such as {"anchor": … | ["a", "b"]\n
        a.csv | : found the columns Export, column_2.* delete rows above the header | Export,,\nHEAD
        a.csv | : found .* columns=\{'text1': 'text1', .* 'label': 'NAME'\} | id,text1,text2,dup\n
        a.jsonl | : has answers of Prodigy.* 'label': 'answer' | {"answer": "reject", "_task_hash": 1}
        a.xlsx | : not readable as a spreadsheet | PK
        """),
        (
            "a.csv",
            ":1: has NUL characters, as in UTF-16",
            PLAIN.encode("utf-16-le").decode("latin-1"),
        ),
        (
            "a.csv",
            r".*\{'text1': 'a', 'text2': 'same', 'label': 'score'\}",
            "a,same,score,b\nA text of several words.,Another of several words.,1,2\n",
        ),
        *(
            ("a.csv", ":2: text1 is empty", f"HEAD{blank}{blank},b,1\n")
            for blank in ["\x00", "\xad", "\u200b", "\u2060", "⠀", "ㅤ", "️", "\ufeff"]
        ),
        (
            "a.jsonl",
            ":10001: the column text1 has lists or struct",
            LINES * 5_000 + '{"text1": {"en": "a"}, "text2": "b", "label": 1}\n',
        ),
        (
            "a.json",
            ":1: the column text2 has lists",
            '[{"text1": "x", "text2": ["a", {}], "label": 1}, {"text1": "y", "text2": "b", "label": 0}]',
        ),
        ("a.json", ":1: not JSON .too deep or too large", "[" * 100_000),
        ("a.csv", ": has more than 10,000 columns", ",".join(map(str, range(20_000)))),
        (
            "a.csv",
            ": is compressed; name a gzip file .gz, a spreadsheet .xlsx, or unpack it",
            "PK\3\4",
        ),
    ],
)
def test_messages_name_row_and_remedy(tmp_path, name, message, content):
    whole = content.replace("HEAD", HEAD).replace("LINES", LINES)
    path = put(tmp_path, name, whole)
    with raises(PairkitError, match=rf"a\.\w+{message}") as raised:
        pairkit.read(path)
    assert "\n" not in str(raised.value)


def test_missing_values_are_counted(tmp_path):
    words = ("nan", "None", "NULL", "\\N", "#N/A", "<NA>", "#REF!", " ")
    rows = "".join(f"a,{word},1\n" for word in (*words, "none"))
    path = put(tmp_path, "a.csv", HEAD + rows)
    left_out = pairkit.read(path, bad_rows="skip")
    assert left_out["train"]["text2"].to_list() == ["none"]
    assert left_out.bad_rows is not None
    assert left_out.bad_rows["reason"].to_list() == ["placeholder_text2"] * 7 + [
        "empty_text2"
    ]
    rows = "text1;text2;label\na;b;0,8\na;b;n/a\na;b;1,0\n"
    labels = put(tmp_path, "b.csv", rows)
    read = pairkit.read(labels, bad_rows="skip")
    assert read["train"]["label"].round(2).to_list() == approx([0.8, 1])


OOXML = "http://schemas.openxmlformats.org"
MAIN, LINKS = (
    f"{OOXML}/spreadsheetml/2006/main",
    f"{OOXML}/officeDocument/2006/relationships",
)
SHEET = f'<worksheet xmlns="{MAIN}"><sheetData>{{}}</sheetData></worksheet>'
BOOK = f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets>{{}}</sheets></workbook>'
PARTS = (
    f'<Relationships xmlns="{OOXML}/package/2006/relationships">{{}}</Relationships>'
)


def spreadsheet(path, sheets):
    """A minimal .xlsx file; None is an empty cell."""
    listed = parts = ""
    with zipfile.ZipFile(path, "w") as file:
        for number, (name, rows) in enumerate(sheets.items(), 1):
            listed += f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>'
            parts += f'<Relationship Id="r{number}" Type="{LINKS}/worksheet" Target="worksheets/{number}.xml"/>'
            cells = ""
            for row, values in enumerate(rows, 1):
                cells += f'<row r="{row}">'
                for column, value in zip("ABCDE", values, strict=False):
                    if value is not None:
                        kind = "str" if isinstance(value, str) else "n"
                        cells += f'<c r="{column}{row}" t="{kind}"><v>{value}</v></c>'
                cells += "</row>"
            file.writestr(f"xl/worksheets/{number}.xml", SHEET.format(cells))
        file.writestr("xl/workbook.xml", BOOK.format(listed))
        file.writestr("xl/_rels/workbook.xml.rels", PARTS.format(parts))
        root = f'<Relationship Id="r0" Type="{LINKS}/officeDocument" Target="xl/workbook.xml"/>'
        file.writestr("_rels/.rels", PARTS.format(root))
    return path


def test_spreadsheets(tmp_path):
    pytest.importorskip("fastexcel")
    rows = [
        ("text1", "text2", "label", "id "),
        (*ROWS[0], 7),
        (),
        (*ROWS[1], 8),
        (None, " "),
    ]
    path = spreadsheet(tmp_path / "a.xlsx", {"Pairs": rows, "B": [("text",), ("x",)]})
    found = pairkit.read(path)["train"]
    assert found.select("text1", "text2", "label", "id").rows() == [
        (*ROWS[0], 7),
        (*ROWS[1], 8),
    ]
    numbers = pairkit.read(path, columns={"anchor": "id", "positive": "text1"})["train"]
    assert numbers["text1"].to_list() == ["7", "8"]
    with data_error(r"a\.xlsx: no sheet 'C'; there are Pairs, B"):
        pairkit.read(f"{path}:C")


@parametrize("as_pandas", [True, False])
def test_rows_in_memory_are_read_like_files(as_pandas):
    rows = [
        {" text1": "a", "text2": "b", "label": label} for label in (1, "", None, 0.0)
    ]
    source = pytest.importorskip("pandas").DataFrame(rows) if as_pandas else rows
    found = pairkit.read(source, bad_rows="skip")
    assert found["train"]["label"].to_list() == [1, 0]
    assert found.bad_rows is not None
    assert found.bad_rows["row"].to_list() == [2, 3]


def test_equal_names_of_pandas_differ_as_in_a_file():
    pandas = pytest.importorskip("pandas")
    source = pandas.DataFrame([["a", "b", 1]], columns=["text1", "text1", "label"])
    assert tables_in_memory(source)["train"].columns == ["text1", "text1_2", "label"]


@table("""
    names, are_splits
    train dev_set | True
    trainA trainB | True
    TRAIN Testing2 | True
    training valid val | True
    validation dev-2 devset | True
    train_1 test testing test2017 tests | True
    trainA text | False
    trainee values | False
    TRAINED TESTABLE | False
    value device trainer tester | False
    value | False
""")
def test_a_mapping_of_lists_is_a_table_unless_all_names_are_splits(names, are_splits):
    tables = tables_in_memory({name: ["a", "b"] for name in names.split()})
    if are_splits:
        expected = {name: ["text"] for name in names.split()}
        assert {name: found.columns for name, found in tables.items()} == expected
    else:
        assert tables["train"].columns == names.split()
