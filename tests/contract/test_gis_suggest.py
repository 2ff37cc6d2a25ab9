"""A suggestion is the same whether an index is asked or a server, and the one that a backtest has seen."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import aoe_train
import gis_builder
from tests.aoe_train.tiny import save_bert

ROOT = Path(__file__).resolve().parents[2]
REPO, ISSUE = "quarryhq/quarry", 603


def test_index_server_and_backtest_agree(tmp_path: Path) -> None:
    model, sample = save_bert(tmp_path / "bert"), ROOT / "data" / "sample"
    gis_builder.import_tracker(sample, tmp_path / "work", progress=False)
    gis_builder.render(tmp_path / "work", tmp_path / "issues.parquet", progress=False)
    issues = pl.read_parquet(tmp_path / "issues.parquet").filter(repo=REPO)
    aoe_train.index(issues, model=model, out=tmp_path / "index", cache=False, progress=False)
    with (
        gis_builder.emulate(sample) as github,
        aoe_train.serve(model, index=tmp_path / "index", port=0, progress=False) as server,
    ):
        asked = {"api_url": github.url, "token": "any", "progress": False}
        by_server = gis_builder.suggest(REPO, ISSUE, server=server.url, **asked)
        by_index = gis_builder.suggest(REPO, ISSUE, index=tmp_path / "index", **asked)
    assert len(by_index.suggestions) == 5
    assert by_index.to_dict() == by_server.to_dict()
    hits = aoe_train.search_every(tmp_path / "index", before="created_at", progress=False).hits
    own = hits.filter(id_1=f"{REPO}#{ISSUE}").sort("rank").head(5)
    assert [f"{REPO}#{one.number}" for one in by_index.suggestions] == own["id_2"].to_list()
    for name in ("cosine", "words"):
        told = [getattr(one, name) for one in by_index.suggestions]
        assert own[name].to_list() == pytest.approx(told, abs=1e-5)
