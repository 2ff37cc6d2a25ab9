"""A suggestion is a hit of `aoe search` for that issue."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import aoe_train
import gis_builder
from tests.aoe_train.tiny import save_bert

ROOT = Path(__file__).resolve().parents[2]
REPO, ISSUE = "quarryhq/quarry", 603


def test_suggestions_are_the_hits_of_a_search(tmp_path: Path) -> None:
    model = save_bert(tmp_path / "bert")
    gis_builder.import_tracker(ROOT / "data" / "sample", tmp_path / "work", progress=False)
    gis_builder.render(tmp_path / "work", tmp_path / "issues.parquet", progress=False)
    issues = pl.read_parquet(tmp_path / "issues.parquet").filter(repo=REPO)
    aoe_train.index(issues, model=model, out=tmp_path / "index", cache=False, progress=False)
    found = gis_builder.suggest(REPO, ISSUE, index=tmp_path / "index", work=tmp_path / "work")
    assert len(found.suggestions) == 5
    hits = aoe_train.search_every(tmp_path / "index", before="created_at", progress=False)
    own = hits.hits.filter(id_1=f"{REPO}#{ISSUE}").sort("rank").head(5)
    assert [f"{REPO}#{one.number}" for one in found.suggestions] == own["id_2"].to_list()
    for name in ("cosine", "words"):
        assert own[name].to_list() == pytest.approx(
            [getattr(one, name) for one in found.suggestions], abs=1e-5
        )
