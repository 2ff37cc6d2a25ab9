"""`gis render`: the texts of a crawl as a table."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import gis_builder
from tests.gis_builder.conftest import issue, write_tracker
from tests.gis_builder.crawl_world import crawled
from tests.support.github import Server

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"


def test_issues_are_rendered_as_in_a_dataset(tmp_path: Path) -> None:
    work, file = tmp_path / "gis.work", tmp_path / "issues.parquet"
    gis_builder.import_tracker(SAMPLE / "quarryhq", work, progress=False)
    gis_builder.detect(work, progress=False)
    pairs = gis_builder.pair(work, tmp_path / "gis", progress=False).pairs.rows
    counts = gis_builder.render(work, file, progress=False).counts
    rows = pl.read_parquet(file)
    assert rows.columns == ["id", "repo", "number", "url", "text", "created_at", "state", "labels"]
    assert rows.height == counts["written"] == rows["id"].n_unique()
    texts = dict(rows.select("id", "text").iter_rows())
    for side in ("1", "2"):
        names = ("repo", f"number{side}", f"text{side}")
        assert all(
            texts[f"{repo}#{number}"] == text for repo, number, text in pairs.select(names).iter_rows()
        )


def test_issues_without_text_are_counted(tmp_path: Path) -> None:
    empty = {2: "", 3: "**EDIT:**", 4: "? - :-( \N{CRAB}"}
    issues = [issue("ann/tool", 1), *(issue("ann/tool", n, title="", body=body) for n, body in empty.items())]
    write_tracker(tmp_path / "saved", "ann/tool", issues=issues)
    gis_builder.import_tracker(tmp_path / "saved", tmp_path / "work", progress=False)
    rendered = gis_builder.render(tmp_path / "work", tmp_path / "issues.parquet", progress=False)
    assert rendered.to_dict() == {"out": str(rendered.out), "written": 1, "text_empty": 3}


def test_a_renamed_repository_is_rendered_once(tiny: Server, tmp_path: Path) -> None:
    crawled(tiny, tmp_path / "work", ["acme/missile", "acme/rocket"], strategy="all")
    rendered = gis_builder.render(tmp_path / "work", tmp_path / "issues.parquet", progress=False)
    assert sum(rendered.counts.values()) == 6
    assert pl.read_parquet(rendered.out)["id"].is_unique().all()
