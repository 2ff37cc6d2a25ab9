"""Indexes of folders of documents."""

import pytest

from aoe_train import Encoder, open_index
from tests.aoe_train.shorthand import aoe, index
from tests.support.shorthand import data_error, table


@pytest.fixture
def handbook(tmp_path):
    folder = tmp_path / "handbook"
    (folder / "rules").mkdir(parents=True)
    (folder / "index.md").write_text("# The house\n\nAn old house in the city.\n")
    (folder / "rules" / "dogs.md").write_text(
        "# Dogs\n\n## When may they run?\n\nA dog may run in the park.\n"
    )
    return folder


def test_chunks_name_their_place_and_address(bert, handbook, out):
    index(handbook, bert, out, link="https://a.example/{page}?l={line}#{anchor}")
    opened = open_index(out)
    hit, *_ = opened.search("dog park", by="words")
    assert hit.row == {
        "title": "Dogs > When may they run?",
        "text": "A dog may run in the park.",
        "file": "rules/dogs.md",
        "place": "rules/dogs.md:5",
        "anchor": "when-may-they-run",
        "url": "https://a.example/rules/dogs?l=5#when-may-they-run",
    }
    assert hit.text == "Dogs > When may they run?\n\nA dog may run in the park."
    assert (hit.key_column, hit.key) == ("place", "rules/dogs.md:5")
    assert opened.rows["url"][0] == "https://a.example/?l=3#the-house"
    assert "rules/dogs.md:5" in aoe(
        f"search {out} 'dog park' --where file=rules/dogs.md"
    )


def test_an_index_follows_its_folder(bert, handbook, tmp_path):
    out = tmp_path / "index"
    first = index(handbook, bert, out)
    assert (first.rows, first.encoded, first.removed) == (2, 2, 0)
    (handbook / "index.md").unlink()
    (handbook / "new.md").write_text("# The boat\n\nA red boat on the river.\n")
    second = index(handbook, bert, out)
    assert (second.rows, second.encoded, second.removed, second.missing) == (2, 1, 1, 0)
    assert "earlier texts removed: 1" in second.notes()
    assert open_index(out, words_only=True).rows["file"].to_list() == [
        "new.md",
        "rules/dogs.md",
    ]


def test_no_chunk_is_longer_than_the_model_reads(bert, out, tmp_path):
    (tmp_path / "a.md").write_text(
        "# Dogs\n\n" + "the zebra is running in the city. " * 400
    )
    index(tmp_path / "a.md", bert, out, chunk_tokens=32)
    texts = open_index(out, words_only=True)
    assert Encoder.load(bert).tokens(texts.texts(range(len(texts)))).lengths.max() <= 32
    assert len(texts) > 50


@table(
    """
    given, error, message
    {'link': 'https://a.example/{name}'} | ConfigError | expected an address with {file}, {page}
    {'link': '{file.name}'} | ConfigError | expected an address with {file}, {page}
    {'link': '{file[a]}'} | ConfigError | expected an address with {file}, {page}
    {'chunk_tokens': 100000} | ConfigError | reads at most
    {'chunk_tokens': 16} | ConfigError | adds 10 to each text; expected 18 to
    {'columns': {'text': 'a'}} | ConfigError | only for tables
    {'texts': ['a dog'], 'link': '{page}'} | ConfigError | can't be set for texts in a table
    {'texts': ['a dog'], 'chunk_tokens': 64} | ConfigError | can't be set for texts in a table
    """,
)
def test_options_that_do_not_fit(bert, handbook, out, given, error, message):
    model = Encoder.load(bert, prompts={"document": "the dog is running in the city. "})
    with pytest.raises(error, match=message):
        index(given.pop("texts", handbook), model, out, **given)


def test_a_folder_without_text(bert, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("---\ntitle: x\n---\n")
    with data_error("no text"):
        index(tmp_path / "docs", bert, tmp_path / "index")
