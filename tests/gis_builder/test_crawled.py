"""What a store remembers of its crawl, and that links lead to the pages of the server that was crawled."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import gis_builder
from gis_builder.store.crawled import remember, site_at, site_of, stored_record
from gis_builder.store.folders import open_store

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("api.github.com", "https://github.com"),
        ("api.acme.ghe.com", "https://acme.ghe.com"),
        ("github.example.com", "https://github.example.com"),
        ("apiary.example.com", "https://apiary.example.com"),
        ("127.0.0.1", "https://github.com"),
        ("::1", "https://github.com"),
        ("localhost", "https://github.com"),
    ],
)
def test_pages_lie_beside_the_api_or_one_name_above_it(host: str, site: str) -> None:
    assert site_at(host) == site


def test_every_link_of_a_company_s_server_leads_there(tmp_path: Path) -> None:
    work = tmp_path / "gis.work"
    gis_builder.import_tracker(SAMPLE, work, progress=False)
    with open_store(work) as store:
        assert site_of(store) == "https://github.com"  # a saved tracker names no server
        remember(store, stored_record(store) | {"server": "github.example.com"})
        assert site_of(store) == "https://github.example.com"
    gis_builder.detect(work, progress=False)
    rows = gis_builder.pair(work, tmp_path / "gis", progress=False).pairs.rows
    rendered = gis_builder.render(work, tmp_path / "issues.parquet", progress=False)
    evidence = rows.filter(pl.col("label") == 1)["evidence"].struct.field("url")
    links = [rows["url1"], rows["url2"], evidence, pl.read_parquet(rendered.out)["url"]]
    found = pl.concat([link.alias("url") for link in links])
    assert found.len() > 100
    assert found.str.starts_with("https://github.example.com/").all()
