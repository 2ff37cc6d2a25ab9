from pathlib import Path

import polars as pl

import pairkit
from pairkit.dataset.reading.named_sources import named_sources, named_words
from tests.support.shorthand import config_error, parametrize

ROWS = [{"text1": "a", "text2": "b", "label": 1}]


@parametrize(
    "source",
    [
        ROWS,
        ["a text", "another"],
        pl.DataFrame(ROWS),
        {"train": ROWS, "validation": ROWS},
        {"train": ROWS, "x": ROWS},
        {"anchor": ["a"], "positive": ["b"]},
        [],
    ],
    ids=["rows", "texts", "frame", "splits", "train", "columns", "empty"],
)
def test_single_source(source):
    ((name, found),) = named_sources(source).items()
    assert found is source
    assert name == "data-1"


def test_a_mapping_gives_names():
    assert named_sources({"nli": Path("a.tsv"), "more": ROWS}) == {
        "nli": "a.tsv",
        "more": ROWS,
    }
    with config_error(r"'a.b' can't be the name of a dataset; expected letters"):
        named_sources({"a.b": "x.tsv"})


def test_mapping_of_splits():
    for named in (
        {"train": "train.tsv"},
        {"dev": "dev.tsv", "test": "t.tsv"},
        {"dev": ROWS, "more": ROWS},
    ):
        assert named_sources(named) == named
    with config_error(r"^train and validation are names of splits: give held-out rows"):
        named_sources({"train": "a.tsv", "dev": "b.tsv"})


def test_lists_of_sources(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.tsv").write_text("x")
    paths = [str(tmp_path / folder / "train.tsv") for folder in ("a", "b")]
    assert named_sources(paths) == {"a-train": paths[0], "b-train": paths[1]}
    pattern = str(tmp_path / "*" / "train.tsv")
    assert named_sources([pattern, paths[0]]) == {"train": pattern, "a-train": paths[0]}
    assert [*named_sources([pl.DataFrame(ROWS), ROWS])] == ["data-1", "data-2"]
    assert [*named_sources([pairkit.read(ROWS), Path("x.csv")])][1] == "x"
    for rows in ([("a", "b", 1), ("c", "d", 0)], [["a", "b", 1]]):  # not two datasets
        assert [*named_sources(rows)] == ["data-1"]
    with config_error(
        r"'no.tsv': no such file or folder, but others of the list exist"
    ):
        named_sources([*paths, "no.tsv"])
    with config_error(r"two datasets are named"):
        named_sources([Path(paths[0]), Path(paths[0])])


def test_command_line_sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.tsv").write_text("x")
    assert named_words(["nli=x/nli.tsv", "owner/stsb", "a=b.tsv"]) == {
        "nli": "x/nli.tsv",
        "stsb": "owner/stsb",
        "a-b": "a=b.tsv",
    }
    assert named_words(["./n=x.tsv"]) == {"n-x": "./n=x.tsv"}
