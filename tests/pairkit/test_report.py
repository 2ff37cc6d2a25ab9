import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.result_table import escape
from pairkit.cli import app
from pairkit.dataset.records import PairDataset
from pairkit.reports import make_report
from pairkit.reports.page import link, shown, table
from pairkit.system.folders import beside

from .report_material import HOSTILE, dataset, written

matplotlib_image = pytest.importorskip("matplotlib.image")


class Page(HTMLParser):
    """What a browser would see: tags with attributes, and the text between them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(name))]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = written(tmp_path_factory.mktemp("report") / "acme")
    return make_report(PairDataset(dataset().splits, str(source)), progress=False).out


def test_the_folder_stands_beside_the_dataset_and_is_complete(out: Path) -> None:
    assert out.name == "acme.report"
    names = {path.name for path in out.iterdir()}
    figures = {f"{name}.{kind}" for name in ("lengths", "overlap", "sources") for kind in ("png", "svg")}
    assert names == figures | {"index.html", "report.json"}
    counts = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert counts["splits"]["all"]["total"] == 16
    assert counts["dropped"]["Positives dropped"] == {"not_fetched": 57, "same_text": 4}


@pytest.mark.parametrize("name", ["lengths", "overlap", "sources"])
def test_figures_are_pictures_with_something_on_them(out: Path, name: str) -> None:
    picture = matplotlib_image.imread(out / f"{name}.png")
    assert picture.shape[1] >= 800
    for colour in ("#d8701a", "#1273b5"):  # both sides are drawn
        wanted = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        assert (np.abs(picture[..., :3] - wanted).max(axis=2) < 0.02).sum() > 50
    assert ET.parse(out / f"{name}.svg").getroot().tag.endswith("svg")


def test_the_page_asks_nobody_and_runs_nothing(out: Path) -> None:
    page = Page(out / "index.html")
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    assert not page.values("src")
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    addresses = page.values("href") + page.values("xlink:href")
    assert all(address.startswith(("#", "https://github.com/")) for address in addresses)
    style = (out / "index.html").read_text(encoding="utf-8")
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", style)


def test_hostile_texts_are_shown_as_they_are(out: Path) -> None:
    page = Page(out / "index.html")
    assert HOSTILE.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd") in page.text
    assert "javascript:" not in " ".join(page.values("href"))


def test_names_within_the_page_are_unique_and_lead_somewhere(out: Path) -> None:
    page = Page(out / "index.html")
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    text = (out / "index.html").read_text(encoding="utf-8")
    targets = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert targets <= set(ids)


def test_the_page_says_what_is_to_be_said(out: Path) -> None:
    text = Page(out / "index.html").text
    for words in ("9,457", "61.0", "Jaccard", "not fetched", "acme/rocket", "Negative: hard", "26.0 %"):
        assert words in text
    marked = re.findall(r"<mark>(.*?)</mark>", (out / "index.html").read_text(encoding="utf-8"))
    assert not {"the", "parser"} & {word.lower() for word in marked}  # nearly every text has them


def test_equal_input_gives_equal_bytes_and_replaces_the_report(out: Path) -> None:
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    source = out.with_name("acme")
    make_report(PairDataset(dataset().splits, str(source)), progress=False)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_graded_labels_of_one_split_without_provenance_and_a_file_of_mine(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text1": ["a b", "c d", "!"], "text2": ["a b", "c", "?"], "label": [5.0, 2.5, 0.0]})
    pairs, home = PairDataset({"test": frame}, "sts.tsv", "graded"), tmp_path / "r"
    report = make_report(pairs, home, progress=False)
    text = Page(report.page).text
    assert (tmp_path / "r" / "scores.png").is_file()
    assert "score 2.5 or more" in text
    assert "does not say where its rows come from" in text
    assert report.counts["splits"]["all"]["high"] == 2
    assert report.counts["overlap"]["low"] == [None] * 3  # of texts without words
    (home / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"r: holds notes\.txt, which is no part of a report"):
        make_report(pairs, home, progress=False)
    assert (home / "notes.txt").is_file()


def test_hostile_sources_are_names_and_nothing_else(tmp_path: Path) -> None:
    names = ["<script>x</script>", "a$b$c", "two\nlines\x1b", "é" * 80]
    frame = pl.DataFrame({"text1": ["a"] * 4, "text2": ["b"] * 4, "label": [1, 0, 1, 0], "source": names})
    report = make_report(PairDataset({"train": frame}, "odd"), tmp_path / "r", progress=False)
    assert "script" not in {tag for tag, _ in Page(report.page).tags}
    drawn = "".join(ET.parse(report.out / "sources.svg").getroot().itertext())
    for drawn_name in ("<script>x</script>", "a$b$c", "two lines\ufffd", "é" * 31 + "…"):
        assert drawn_name in drawn


@pytest.mark.parametrize(
    ("source", "name"), [("owner/data:config", "data-config.report"), ("no/such.tsv", "such.tsv.report")]
)
def test_a_dataset_from_elsewhere_is_reported_here(source: str, name: str) -> None:
    assert beside(source, "report") == Path(name)


def test_what_stands_at_out_is_not_replaced(tmp_path: Path) -> None:
    source = written(tmp_path / "data" / "acme")
    pairs = PairDataset(dataset().splits, str(source))
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for target, why in (
        (source, "would replace the dataset"),
        (source.parent, "would replace the dataset"),
        (tmp_path / "file", "is a file"),
        (tmp_path, "would replace the dataset"),
        (written(tmp_path / "other"), "no part of a report of `pairs report`"),
    ):
        with pytest.raises(ConfigError, match=why):
            make_report(pairs, target, progress=False)
    assert (tmp_path / "other" / "train.parquet").is_file()


def test_a_file_of_the_same_name_makes_no_report(tmp_path: Path) -> None:
    pairs, mine = PairDataset(dataset().splits, "acme"), tmp_path / "mine"
    mine.mkdir()
    for text in ('{"total": 3}', "[]", "{"):
        (mine / "report.json").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"holds report\.json, which is no part of a report"):
            make_report(pairs, mine, progress=False)
    assert (mine / "report.json").read_text(encoding="utf-8") == "{"


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=re.escape("pip install 'aoe-toolkit[figures]'")):
        make_report(dataset(), tmp_path / "r", progress=False)
    assert not (tmp_path / "r").exists()


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    source = written(tmp_path / "acme")
    (source / "statistics.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        make_report(PairDataset(dataset().splits, str(source)), progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["acme"]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "acme")
    result = CliRunner().invoke(app, ["report", str(source), "--json", "-q"])
    assert result.exit_code == 0, result.output
    told = json.loads(io.StringIO(result.stdout).readlines()[-1])
    assert told["page"] == str(tmp_path / "acme.report" / "index.html")
    assert told["splits"]["all"]["positive"] == 8
    result = CliRunner().invoke(app, ["report", str(tmp_path / "none")])
    assert isinstance(result.exception, ConfigError)
    assert "no such file or folder" in str(result.exception)


def test_the_terminal_shows_each_count_as_what_it_is(tmp_path: Path) -> None:
    source = written(tmp_path / "acme")
    result = CliRunner().invoke(app, ["report", str(source), "-q"])
    assert result.exit_code == 0, result.exception
    counts = json.loads((tmp_path / "acme.report" / "report.json").read_text())["splits"]
    lines = {line[:24].strip(): line[24:].split() for line in result.stdout.splitlines()}
    assert lines["total"] == ["14", "2", "16"]
    assert lines["AUC of the gap in time"] == [f"{of['gap_auc']:.4f}" for of in counts.values()]
    assert lines["> 512 tokens"] == ["0%", "0%", "0%"]


def test_a_home_that_cannot_be_written_is_no_news(tmp_path: Path) -> None:
    """matplotlib would warn of its cache, over several lines."""
    (tmp_path / "plain.csv").write_text("text1,text2,label\na b,c d,1\ne f,g h,0\n")
    environment = {**os.environ, "HOME": "/nowhere", "MPLCONFIGDIR": "/proc/nowhere"}
    command = [sys.executable, "-m", "pairkit", "report", "plain.csv"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"AUC of the gap in time +– +–", done.stdout)  # there are no dates
    assert done.stderr.splitlines() == [
        "next: open the page in a browser",
        f"  {tmp_path / 'plain.csv.report' / 'index.html'}",
    ]


def test_nothing_stays_markup() -> None:
    assert escape("<b onclick='x'>\"&\x1b\u202e") == "&lt;b onclick=&#x27;x&#x27;&gt;&quot;&amp;\ufffd\ufffd"


def test_an_https_address_becomes_a_link() -> None:
    assert link("https://github.com/a/b/issues/1?a=1&b=2", "#1") == (
        '<a href="https://github.com/a/b/issues/1?a=1&amp;b=2" rel="noopener noreferrer nofollow">#1</a>'
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://github.com/x",
        "javascript:alert(1)",
        " https://github.com",
        "HTTPS:x",
        "https://",
        "https://[bad",
        "https://me@evil.example/",
        "//evil.example",
        None,
        7,
    ],
)
def test_anything_else_does_not(address: object) -> None:
    assert link(address, "<text>") == "&lt;text&gt;"


def test_quotes_do_not_end_an_address() -> None:
    assert 'href="https://a.example/&quot;onclick=&quot;"' in link('https://a.example/"onclick="', "x")


def test_cells() -> None:
    assert [shown(cell) for cell in (1234, 0.6103, None, "<")] == ["1,234", "61.0&#8239;%", "–", "&lt;"]
    assert '<th scope="row">a</th><td>1</td>' in table(["x", "y"], [("a", 1)])
