import json

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit import audit, read
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    parametrize,
    table,
)

WIDE = [
    {
        "anchor": "a",
        "positive": "b",
        "negative_1": "c",
        "negative_2": "d",
        "negative_3": "e",
    },
    {
        "anchor": "f",
        "positive": "g",
        "negative_1": "h",
        "negative_2": None,
        "negative_3": "i",
    },
]
LISTS = [
    {"anchor": "a", "positive": "b", "negative": ["c", "d", "e"]},
    {"anchor": "f", "positive": "g", "negative": ["h", "i"]},
]
NEGATIVES = [["c", "d", "e"], ["h", "i"]]


def negatives(source, **arguments):
    """The negatives of each anchor."""
    rows = read(source, **arguments).rows.filter(label=0)
    return rows.group_by("text1", maintain_order=True).agg("text2")["text2"].to_list()


def in_file(name, rows):
    def write(folder):
        path, frame = folder / name, pl.DataFrame(rows)
        match path.suffix:
            case ".parquet":
                frame.write_parquet(path)
            case ".jsonl":  # a key whose value is null may be missing
                lines = [
                    {key: value for key, value in row.items() if value is not None}
                    for row in rows
                ]
                path.write_text("\n".join(map(json.dumps, lines)))
            case ".json":
                path.write_text(json.dumps(rows))
            case ".csv":
                frame.write_csv(path)
            case _:
                frame.write_csv(path, separator="\t", quote_style="never")
        return path

    return write


@parametrize("rows", [WIDE, LISTS], ids=["columns", "lists"])
@parametrize("name", ["a.parquet", "a.jsonl", "a.json", "a.csv", "a.tsv"])
def test_files(tmp_path, name, rows):
    if name.endswith("sv") and rows is LISTS:  # as `pairs export` writes lists
        rows = [{**row, "negative": json.dumps(row["negative"])} for row in rows]
    assert negatives(in_file(name, rows)(tmp_path)) == NEGATIVES


@each_line("""
    header, found
    anchor,positive,negative_0,negative_1 | cd
    anchor,positive,negative_10,negative_2 | dc
    query,positive,negative,negative_1 | cd
    question,positive,negative1,negative2 | cd
    Query,Answer,Hard_Negative_1,hard_negative_2 | cd
    sent0,sent1,hard_neg,negative_text_2 | cd
    sentence,positive,id,negatives | d
""")
def test_common_column_names(tmp_path, header, found):
    (tmp_path / "a.csv").write_text(f"{header}\na,b,c,d\n")
    assert negatives(tmp_path / "a.csv") == [[*found]]


def test_columns_about_negatives_are_ignored():
    names = (
        "negative_kind",
        "negative_id",
        "negative_score",
        "negation",
        "non_negative",
    )
    assert (
        negatives([{"anchor": "a", "positive": "b", **dict.fromkeys(names, "c")}]) == []
    )


def test_each_negative_becomes_a_pair():
    rows = [{**row, "source": number} for number, row in enumerate(WIDE)]
    (frame,) = read(rows).splits.values()
    assert frame.columns == ["text1", "text2", "label", "source"]
    first = [("a", "b", 1, 0), *(("a", text, 0, 0) for text in "cde")]
    assert frame.rows() == [
        *first,
        ("f", "g", 1, 1),
        ("f", "h", 0, 1),
        ("f", "i", 0, 1),
    ]


def test_files_with_different_numbers_of_negatives(tmp_path):
    (tmp_path / "train-0.csv").write_text("anchor,positive,negative\na,b,c\n")
    (tmp_path / "train-1.csv").write_text(
        "anchor,positive,negative_1,negative_2\nd,e,f,g\n"
    )
    assert negatives(tmp_path) == [["c"], ["f", "g"]]


@table(r"""
    header, row, says
    anchor,positive,negative | d,e, | a\.csv:3: negative is empty; fill it
    anchor,positive,negative_1,negative_2 | "d,e,, " | :3: all of negative_1, negative_2 are empty
""")
def test_row_without_negatives(tmp_path, header, row, says):
    first = ",".join("abcd"[: header.count(",") + 1])
    (tmp_path / "a.csv").write_text(f"{header}\n{first}\n{row}\n")
    with data_error(says):
        read(tmp_path / "a.csv")
    assert audit(tmp_path / "a.csv").bad_rows["empty_negative"].examples == (
        f"{tmp_path}/a.csv:3",
    )


@table("""
    cell, says
    [{'text': 'c'}] | the lists in negative don't hold texts
    [b'c'] | the lists in negative don't hold texts
    "['c', 'd']" | list given:1: negative has a value that isn't a JSON list of texts
    '["c", {"d": 1}, "e"]' | list given:1: negative has a value that isn't a JSON list of texts
""")
def test_invalid_lists(cell, says):
    with data_error(says):
        read([{"anchor": "a", "positive": "b", "negative": cell}])


def test_texts_beside_lists():
    rows = [{"anchor": "a", "positive": "b", "negative": "c"}]
    rows.append({"anchor": "d", "positive": ["e"], "negative": ["f", "g"]})
    assert negatives(rows) == [["c"], ["f", "g"]]
    rows.append({"anchor": "h", "positive": "i", "negative": {"text": "j"}})
    with data_error("list given:3: negative has a value that isn't a JSON list"):
        read(rows)


def test_texts_in_brackets():
    texts = ['["a"] is a list', '["a"]']
    assert negatives(
        [{"anchor": "a", "positive": "b", "negative": text} for text in texts]
    ) == [texts]


def test_mapping_of_negatives():
    rows = [{"q": "a", "a": "b", "hn0": "c", "hn1": "d"}]
    mapping = {"anchor": "q", "positive": "a"}
    assert negatives(rows, columns={**mapping, "negative": "hn1"}) == [["d"]]
    assert negatives(
        rows, columns={**mapping, "negative_2": "hn0", "negative_1": "hn1"}
    ) == [["d", "c"]]
    assert negatives(rows, columns=mapping) == []


def test_unused_negatives_are_refused():
    columns = {"anchor": "anchor", "positive": "positive"}
    with data_error(
        r"would not use negative_1, negative_2, negative_3, which by name are negatives; drop them, or"
    ):
        read(WIDE, columns=columns)
    with data_error("would not use negative_2, negative_3"):
        read(WIDE, columns={**columns, "negative": "negative_1"})
    assert negatives(WIDE, columns={**columns, "negative": "none"}) == []


@parametrize("name", ["label", "Score"])
def test_labels_with_negatives_are_refused(name):
    rows = [{"anchor": "a", "positive": "b", "neg_1": "c", "neg_2": "d", name: 0.3}]
    columns = {
        "anchor": "anchor",
        "positive": "positive",
        "negative_1": "neg_1",
        "negative_2": "neg_2",
    }
    with data_error(f"has the label column {name} beside negatives"):
        read(rows)
    assert negatives(rows, columns=columns) == [["c", "d"]]
    assert len(read(rows, columns=columns)["train"]) == 3


def test_labelled_pairs_with_negatives_are_refused():
    rows = [{"text1": "a", "text2": "b", "label": 1, "negative": "c"}]
    mapping = {"text1": "text1", "text2": "text2", "label": "label"}
    for columns in (None, mapping):
        with data_error("would not use negative, which by name are negatives"):
            read(rows, columns=columns)
    without = read(rows, columns={**mapping, "negative": "none"})
    assert without["train"].rows() == read(without)["train"].rows() == [("a", "b", 1)]
    with config_error(
        r"a column mapping names .*; found text1, text2, label, negative"
    ):
        read(rows, columns={**mapping, "negative": "negative"})


texts = st.one_of(st.none(), st.sampled_from(["", " ", "x", "yy"]))


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, texts, st.lists(texts, max_size=3)), min_size=1))
def test_lists_have_all_texts(rows):
    frame = pl.DataFrame(
        rows,
        schema={
            "negative_1": pl.String,
            "negative_2": pl.String,
            "negatives": pl.List(pl.String),
        },
        orient="row",
    )
    anchors = pl.Series("anchor", [f"a{n}" for n in range(len(rows))])
    found = read(frame.with_columns(anchors, positive=pl.lit("b")), bad_rows="skip")
    expected = [
        [text for text in (*more, one, two) if text and text.strip()]
        for one, two, more in rows
    ]
    assert negatives(found) == [texts for texts in expected if texts]
