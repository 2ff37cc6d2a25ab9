from __future__ import annotations

import io

import pytest
from rich.console import Console

from pairkit.base.cli.result_table import ResultTable
from pairkit.base.cli.terminal import out


def drawn(table: ResultTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as text:
        console.print(table)
    return [line.rstrip() for line in text.get().splitlines()]


def counts() -> ResultTable:
    table = ResultTable("split", "pairs", "long", title="gis", caption="two splits")
    table.add_row("train", 18_565, "61 %")
    table.add_rule()
    table.add_row("test", None, 0.5)
    return table


def test_alignment() -> None:
    assert str(counts()).splitlines() == [
        "gis",
        "split    pairs   long",
        "─────────────────────",
        "train   18,565   61 %",
        "─────────────────────",
        "test         –    0.5",
        "two splits",
    ]


@pytest.mark.parametrize("width", [24, *range(60, 121)])
def test_narrow_terminal(width: int) -> None:
    table = ResultTable("model", *(f"task {place}" for place in range(12)), "mean")
    table.add_row("a folder with a long name of many words", *range(1_000_000, 1_000_012), 3)
    lines = drawn(table, width)
    assert max(map(len, lines)) <= width
    for number in (*range(1_000_000, 1_000_012), 3):
        assert f"{number:,}" in "\n".join(lines).split()


def test_no_folding_in_files(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = ResultTable("text", "n")
    table.add_row("word " * 100, 1)
    monkeypatch.delenv("COLUMNS", raising=False)
    out.print(table)
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setenv("COLUMNS", "80")
    out.print(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_cells_are_not_markup() -> None:
    table = ResultTable("who", "<b>", title="[red]")
    table.add_row("[bold]dependabot[bot]", "<script>\x1b[2J")
    assert "[bold]dependabot[bot]" in str(table)
    assert "\x1b" not in str(table)
    assert "&lt;script&gt;\ufffd[2J" in table._repr_html_()
    assert "<b>" not in table._repr_html_().replace("<b>[red]</b>", "")
