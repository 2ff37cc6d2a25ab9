"""Commands of `pairs` that make something of datasets: export."""

from __future__ import annotations

from typing import Annotated

import typer

import pairkit
from pairkit._commands import options as o
from pairkit._commands.app import app, examples
from pairkit.terminal import out as stdout


@app.command(
    epilog=examples(
        "pairs export gis-dataset --format jsonl --out gis-jsonl",
        "pairs export gis-dataset --format csv --raw --out gis-csv",
    )
)
def export(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    out: o.Out,
    file_format: Annotated[
        str, typer.Option("--format", metavar="NAME", rich_help_panel="Output", help="jsonl or csv.")
    ] = "jsonl",
    raw: Annotated[
        bool,
        typer.Option("--raw", rich_help_panel="Output", help="CSV for programs, without the apostrophes."),
    ] = False,
) -> None:
    """Write each split of a dataset as a file of JSON lines or CSV.

    In CSV an apostrophe stands before a text that begins with = + - @, a tab or a line end: a spreadsheet
    would run it as a formula.
    """
    names, numbers = o.column_names(columns), o.label_numbers(labels)
    for path in pairkit.export(dataset, out, file_format=file_format, raw=raw, columns=names, labels=numbers):
        stdout.print(str(path), markup=False)
