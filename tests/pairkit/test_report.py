import json
import re
from html.parser import HTMLParser

import polars as pl
import pytest

import pairkit
from pairkit import PairDataset
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    pair,
)

HOSTILE = "</div><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)> \x1b[31m &amp; \u202e"


def row(number, label, **fields):
    evidence = {
        "kind": "closer_comment",
        "url": "https://github.com/acme/rocket/issues/1#issuecomment-1",
    }
    plain = pair(
        f"Crash number {number}\n\nthe parser crashes on start {number}",
        f"Parser crashes {number}\n\nit crashes on every start, alas {number}",
        label,
        repo="acme/rocket" if number % 3 else "acme/fuel",
        number1=number,
        number2=number + 1000,
        url1=f"https://github.com/acme/rocket/issues/{number}",
        url2=f"https://github.com/acme/rocket/issues/{number + 1000}",
        created_at1="2020-01-01T00:00:00Z",
        created_at2="2020-01-02T00:00:00Z",
        evidence={**evidence, "who": "max", "when": "2020-01-03T00:00:00Z"}
        if label
        else None,
        negative_kind=None if label else ("hard" if number % 2 else "random"),
    )
    return plain | fields


def dataset(source="somewhere"):
    train = [
        row(n, n % 2, negative_kind=None if n % 2 else "random") for n in range(1, 13)
    ]
    train += [
        row(20, 0, negative_kind="hard"),
        row(21, 1, text1=HOSTILE, url1="javascript:alert(3)"),
    ]
    test = [row(30, 1, text1="A zeppelin fell", text2="Zeppelin down"), row(31, 0)]
    frames = {
        split: pl.DataFrame(rows, infer_schema_length=None)
        for split, rows in (("train", train), ("test", test))
    }
    return PairDataset(frames, str(source))


def written(folder):
    """The dataset as files with statistics."""
    folder.mkdir(parents=True)
    for split, rows in dataset().splits.items():
        rows.write_parquet(folder / f"{split}.parquet")
    statistics = {
        "dropped_positives": {"same_text": 4, "not_fetched": 57},
        "rejected_issues": {},
        "verdicts": {"duplicate": {"closer_same": 9}, "not": {"open": 2}},
        "clusters": 3,
    }
    (folder / "statistics.json").write_text(json.dumps(statistics))
    return folder


@pytest.fixture
def made(tmp_path):
    """Make a report."""
    return lambda source, **more: pairkit.report(source, tmp_path / "r.html", **more)


def graded(*scores):
    texts = {
        f"text{side}": [f"{side} {n}" for n in range(len(scores))] for side in (1, 2)
    }
    frame = pl.DataFrame({**texts, "label": pl.Series(scores, dtype=pl.Float32)})
    return PairDataset({"train": frame}, "scores.tsv", "graded")


class Page(HTMLParser):
    """Tags with attributes, and the text."""

    def __init__(self, path):
        super().__init__()
        self.tags = []
        self.text = ""
        self.source = path.read_text()
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def values(self, name):
        return [value for _, attributes in self.tags if (value := attributes.get(name))]


@module_fixture
def report(tmp_path_factory):
    source = written(tmp_path_factory.mktemp("report") / "acme")
    return pairkit.report(dataset(source))


def test_sections(report):
    assert report.page.name == "acme.report.html"
    page = Page(report.page)
    for text in (
        "not fetched",
        "acme/rocket",
        "Negative: hard",
        "AUC of the gap",
        "closer comment",
    ):
        assert text in page.text
    marked = re.findall(r"<mark>(.*?)</mark>", page.source)
    # Other shared words are common.
    assert {word.lower() for word in marked} == {"zeppelin"}
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {
        address[1:] for address in page.values("href") if address.startswith("#")
    } <= {*ids}


def test_page_runs_nothing(report):
    page = Page(report.page)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {
        tag for tag, _ in page.tags
    }
    assert not page.values("src")
    names = {name for _, attributes in page.tags for name in attributes}
    assert not any(name.startswith("on") for name in names)
    assert all(
        address.startswith(("#", "https://github.com/"))
        for address in page.values("href")
    )
    assert not re.search(r"@import|url\(", page.source)
    assert HOSTILE.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd") in page.text


def test_graded_labels_without_provenance(made):
    frame = pl.DataFrame(pair(["a b", "c d", "!"], ["a b", "c", "?"], [5.0, 2.5, 0.0]))
    found = made(PairDataset({"test": frame}, "s.tsv", "graded"))
    text = Page(found.page).text
    assert "score 2.5 or more" in text
    assert found.counts["splits"]["all"]["high"] == 2
    assert found.counts["overlap"]["low"] == [None] * 3  # texts without words
    counts = made(graded(1, 2.9, 3, 5), fresh=True).counts
    everything = counts["splits"]["all"]
    assert (counts["cut"], everything["high"], everything["low"]) == (3, 2, 2)
    assert made(graded(0.7, 0.7), fresh=True).counts["splits"]["all"]["high"] == 2


def test_sources_are_escaped(made):
    names = ["<script>x</script>", "two\nlines\x1b", "a", "b"]
    frame = pl.DataFrame(pair(["a"] * 4, ["b"] * 4, [1, 0, 1, 0], source=names))
    found = made(PairDataset({"train": frame}, "odd"))
    assert "script" not in {tag for tag, _ in Page(found.page).tags}
    assert "<script>x</script>" in Page(found.page).text


def test_other_files_are_not_replaced(tmp_path):
    mine = tmp_path / "pairs.tsv"
    mine.write_bytes(b"text1\ttext2\tlabel\n\xff\n")
    for target in (mine, tmp_path):
        with config_error("is not a page of `pairs report`"):
            pairkit.report(dataset(), target)
    assert mine.read_bytes().endswith(b"\xff\n")


def test_counts_by_split_source_and_kind(made):
    found = made(dataset()).counts
    assert list(found["splits"]) == ["train", "test", "all"]
    keys = ("positive", "negative", "total", "texts")
    assert [found["splits"]["train"][key] for key in keys] == [7, 7, 14, 28]
    assert [found["splits"]["all"][key] for key in keys[:3]] == [8, 8, 16]
    assert list(found["sources"].items()) == [
        ("acme/rocket", {"positive": 4, "negative": 6}),
        ("acme/fuel", {"positive": 4, "negative": 2}),
    ]
    negatives = found["kinds"]["negative"]
    assert [negatives[kind]["pairs"] for kind in ("random", "hard")] == [6, 2]
    # "crash number n the parser crashes on start n", "parser crashes n it crashes on every start alas n"
    assert negatives["random"]["overlap"][0] == approx(100 * 5 / 11, abs=0.01)
    assert found["kinds"]["positive"]["closer_comment"]["pairs"] == 8


def test_columns_of_other_types_are_ignored(made):
    odd = pl.DataFrame(
        pair(["a"], ["b"], [0], negative_kind=[[1]], source=[{"a": 1}])
        | {"evidence": [{"kind": ["x"]}]}
    )
    found = made(PairDataset({"train": odd}, "odd")).counts
    assert set(found["kinds"]["negative"]) == {"not recorded"}
    assert found["sources"] == {}
    named = odd.with_columns(genre=pl.lit("news"))
    found = made(PairDataset({"train": named}, "odd"), fresh=True).counts
    assert found["sources"] == {"news": {"positive": 0, "negative": 1}}
    named = odd.with_columns(llms=pl.Series([[]], dtype=pl.List(pl.String)))
    found = made(PairDataset({"train": named}, "odd"), fresh=True).counts
    assert found["sources"] == {"unknown": {"positive": 0, "negative": 1}}


def test_datasets_that_cannot_be_reported(made):
    with data_error("somewhere: has no rows"):
        made(PairDataset({"train": dataset().splits["train"].clear()}, "somewhere"))


def test_drop_reasons(tmp_path, made):
    folder = written(tmp_path / "d")
    assert [*made(folder).counts["dropped"].items()] == [
        ("Positives dropped", {"not_fetched": 57, "same_text": 4}),
        ("Threads judged not to be duplicates", {"open": 2}),
    ]
    odd = {"dropped": [1], "dropped_positives": {"a": "many", "b": 0}, "verdicts": 7}
    (folder / "statistics.json").write_text(json.dumps(odd))
    assert made(folder, fresh=True).counts["dropped"] == {}


def cards(made):
    """The sample pairs of a page, without their splits."""
    found = re.findall(r"<article.*?</article>", made.page.read_text(), re.DOTALL)
    return sorted(card.partition("overlap")[2] for card in found)


def test_samples(made):
    found = cards(made(dataset()))
    assert len(found) == 16
    mixed = dataset().rows.sample(fraction=1, shuffle=True, seed=1)
    assert cards(made(PairDataset({"all": mixed}, "mixed"), fresh=True)) == found
    big = PairDataset({"train": pl.concat([dataset()["train"]] * 3)}, "big")
    page = made(big, fresh=True)
    assert len(cards(page)) == 20
    assert re.findall(r"<h3.*?>(.*?)</h3>", Page(page.page).source) == [
        "Positive: closer comment",
        "Negative: random",
        "Negative: hard",
    ]


def test_only_https_links(made):
    refused = (
        "http://github.com/x",
        "javascript:alert(1)",
        " https://github.com",
        "HTTPS:x",
        "https://",
        "https://[bad",
        "https://me@evil.example/",
        "//evil.example",
    )
    accepted = "https://github.com/a/b/issues/1?a=1&b=2", 'https://a.example/"onclick="'
    rows = [
        row(number, 0, url1=url, url2="")
        for number, url in enumerate((*refused, *accepted))
    ]
    page = Page(made(rows).page)
    assert {url for url in page.values("href") if url[0] != "#"} == {*accepted}
    assert {*page.values("rel")} == {"noopener noreferrer nofollow"}
    assert not page.values("onclick")
