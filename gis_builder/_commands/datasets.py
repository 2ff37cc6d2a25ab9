"""Commands of `gis` on a finished dataset, and the emulator: audit, export, show, emulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json


@app.command(
    epilog=examples(
        "gis audit gis-dataset",
        "gis audit WhereIsAI/github-issue-similarity",
        "gis audit nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
)
def audit(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    json: o.Json = False,
) -> None:
    """Look for leaks between splits, contradictions, repeats and empty texts; exit code 3 if it leaks."""
    from gis_builder._audit import audit as audit_pairs
    from pairkit.errors import LeakError

    report = audit_pairs(o.read_dataset(dataset, columns, labels, check=False))
    if json:
        print_json(report.to_dict())
    else:
        stdout.print(report.to_text(), markup=False)
    if report.leaks:
        raise LeakError("leaks between splits: " + ", ".join(report.leaks), path=dataset)


@app.command(
    epilog=examples(
        "gis export gis-dataset --format jsonl --out gis-jsonl",
        "gis export gis-dataset --format csv --raw --out gis-csv",
    )
)
def export(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; each split becomes a file in it.")],
    file_format: Annotated[str, typer.Option("--format", help="jsonl or csv.")] = "jsonl",
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV without the apostrophe before what a spreadsheet would run.")
    ] = False,
) -> None:
    """Write a dataset as JSON lines or CSV.

    In CSV an apostrophe stands before a text that begins with = + - @, a tab or a line end: a spreadsheet
    would run it as a formula.
    """
    from pairkit.errors import ConfigError
    from pairkit.records import export_pairs

    if file_format not in ("jsonl", "csv"):
        raise ConfigError(f"--format {file_format}: expected jsonl or csv")
    pairs = o.read_dataset(dataset, columns, labels)
    for path in export_pairs(pairs, out, "csv" if file_format == "csv" else "jsonl", raw=raw):
        stdout.print(str(path), markup=False)


@app.command(epilog=examples("gis show gis-dataset", "gis show gis-dataset --row 3 --label 0 --svg pair.svg"))
def show(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    split: Annotated[str, typer.Option("--split", help="train, validation or test.")] = "test",
    row: Annotated[int, typer.Option("--row", help="Which of them, from 0.")] = 0,
    label: Annotated[int | None, typer.Option("--label", help="Only pairs with this label.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Save the picture as SVG, too.")] = None,
) -> None:
    """Show one pair side by side, the words that both texts share marked."""
    from gis_builder._show import pick_pair, print_pair, save_svg

    picked = pick_pair(o.read_dataset(dataset, columns, labels), split, row, label)
    print_pair(stdout, picked)
    if svg is not None:
        save_svg(svg, picked)


@app.command(
    epilog=examples(
        "gis emulate data/sample --port 8000", "gis emulate dump --port 8000 --faults plan.toml --latency 0.2"
    )
)
def emulate(
    dump: Annotated[list[Path], typer.Argument(help="Folders with saved trackers; see gis import --help.")],
    *,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", help="Port; 0 takes any free one.")] = 8000,
    faults: Annotated[Path | None, typer.Option("--faults", help="TOML plan of what goes wrong.")] = None,
    latency: Annotated[float, typer.Option("--latency", help="Seconds each answer takes at least.")] = 0.0,
    replicate: Annotated[
        int, typer.Option("--replicate", help="Serve each repository so often, under further names.")
    ] = 1,
    points: Annotated[int, typer.Option("--points", help="Points a token has in a window.")] = 5000,
    window: Annotated[float, typer.Option("--window", help="Seconds of a window.")] = 3600.0,
) -> None:
    """Serve saved trackers as a local GitHub, over GraphQL and REST. Any token will do but `bad`."""
    from gis_builder._emulator import Options
    from gis_builder._emulator import run as serve_forever

    serve_forever(
        dump,
        host=host,
        port=port,
        faults=faults,
        latency_s=latency,
        replicate=replicate,
        options=Options(points=points, window_s=window),
        announce=lambda server: stdout.print(f"a local GitHub at {server.url} (Ctrl-C ends it)"),
    )
