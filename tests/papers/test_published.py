"""Every row of the papers' tables has a recipe, or a reason why it has none."""

from __future__ import annotations

import json
from statistics import fmean

import pytest

from papers.__main__ import app
from papers.reproduce.recipe import read_recipe, reproduced_rows
from papers.suites import SUITES
from papers.suites.published import PUBLISHED
from tests.support.shorthand import approx, values

ROWS = dict(  # as counted in the papers
    values("""
        AoE, Table 1 | 15
        AoE, Table 2 | 3
        AoE, Table 3 | 10
        AoE, Table 4 | 8
        AoE, Table 5 | 3
        AoE, Table 6 | 1
        AoE, Table 7 | 1
        AoE, Table 8 | 1
        AoE, appendix D | 1
        AoE, MTEB (section 5.1) | 6
        AnglE, Table 1 | 1
        AnglE, Table 2 | 18
        AnglE, Table 3 | 4
        AnglE, Table 4 | 12
        AnglE, Table 5 | 7
        AnglE, Table 6 | 8
        AnglE, text retrieval | 3
        """)
)
EVERY = [
    f"{source}: {row}" for source, table in PUBLISHED.items() for row in table.rows
]
# Their means, by a few hundredths.
MISPRINTED = {
    "SBERT, BERT-base",
    "SBERT",
    "BERT, average",
    "Avg. BERT",
}


def test_no_row_is_left_out():
    found = {source: len(table.rows) for source, table in PUBLISHED.items()}
    assert found == ROWS


def origin(row):
    """The row, or that of another table with the same scores."""
    source, _, name = row.partition(": ")
    scores = PUBLISHED[source].rows[name]
    return origin(scores) if isinstance(scores, str) else row


@pytest.mark.parametrize("row", EVERY)
def test_each_row_has_recipes_for_its_columns_or_a_reason(row):
    source, _, name = origin(row).partition(": ")
    table = PUBLISHED[source]
    recipes = [
        where.partition(": ")[0] for where in reproduced_rows().get(origin(row), [])
    ]
    assert bool(recipes) != (name in table.reasons)
    columns = {column for recipe in recipes for column in columns_of(recipe)}
    assert not recipes or {*table.scores(name)} <= columns | {*table.reasons}


def columns_of(recipe):
    """The columns of a recipe's table at scale full."""
    columns = set()
    for column in read_recipe(recipe).at("full").evaluate:
        own = (
            SUITES[column.suite].tasks
            if column.suite in SUITES
            else PUBLISHED["AoE, Table 1"].columns[:-1]
        )
        columns |= {column.name} if column.name else {*(column.tasks or own)}
        columns |= {"mean"} if column.mean else set()
    return columns


@pytest.mark.parametrize("table", PUBLISHED.values(), ids=PUBLISHED)
def test_published_means_are_those_of_their_rows(table):
    assert table.suite in {"sts", "", *SUITES}
    for row in table.rows if len(table.columns) > 1 else ():
        *figures, mean = table.scores(row).values()
        near = 0.04 if row in MISPRINTED else 0.011
        assert not figures or mean == approx(fmean(figures), abs=near), row


def test_the_command_lists_all_rows(capsys):
    app(["tables", "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert {
        f"{source}: {row}" for source, rows in found.items() for row in rows
    } >= set(EVERY)
    assert found["AoE, Table 3"]["DiffCSE, BERT-base"] == "transfer: DiffCSE"
    assert found["AnglE, Table 6"]["IS-BERT"] == "transfer: IS-BERT"
    assert found["AnglE, Table 2"]["USE"] == "see AoE, Table 1: USE"
    assert (
        "--endpoint https://api.openai.com/v1"
        in found["AoE, Table 1"]["openai-ada-002"]
    )
    assert found["AnglE, Table 3"]["mean"].endswith("average their tables")


def test_llamas_are_scored_in_half_precision():
    """13 thousand million weights in fp32 would be 52 GB."""
    for name in ("nli-llama", "stsb-llama", "transfer", "unsupervised"):
        recipe = read_recipe(name)
        for row in recipe.runs:
            own = row.at("full")
            backbone = own.backbone or row.backbone or recipe.at("full").backbone
            if "Llama" in backbone and own.skip is None:
                assert (own.precision or recipe.at("full").precision) == "bf16", (
                    name,
                    row.name,
                )
