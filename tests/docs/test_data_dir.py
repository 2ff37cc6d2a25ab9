"""The page about test sets lists each file that a suite reads, with its number of rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aoe_train.evaluation import suites as sts
from papers.suites import nli, retrieval, transfer
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "formats" / "data-dir.md").read_text(encoding="utf-8")
ROWS: dict[str, int] = {
    **dict(file for name in sts.STS for file in sts._FILES[name].values()),
    **{f"nli/{name}.tsv.gz": rows for name, rows in nli._ROWS.items()},
    **dict(retrieval._FILES.values()),
    **dict(file for files in transfer._FILES.values() for file in files),
}


@pytest.mark.parametrize("file", ROWS)
def test_file_and_number_of_rows_are_listed(file: str) -> None:
    name = Path(file).name.removesuffix(".gz").removesuffix(".tsv")
    _, dash, part = name.rpartition("-")
    full = [line for line in PAGE.splitlines() if f"`{file}`" in line]
    abbreviated = [line for line in PAGE.splitlines() if re.search(rf"`{dash}{part}`", line)]
    assert any(f"{ROWS[file]:,}" in line for line in [*full, *abbreviated]), file


def test_datasets_of_recipes_are_listed() -> None:
    used = {
        name
        for recipe in (ROOT / "papers" / "recipes").glob("*.toml")
        for name in re.findall(r"\{data\}/([\w./-]+?)(?:/|[\w-]+\.)", recipe.read_text(encoding="utf-8"))
    }
    assert used >= {"nli", "stsb", "pairs", "domain"}
    assert [name for name in used if f"`{name}/" not in PAGE] == []
