"""Commands of `pairs` that look at a dataset: audit, report, show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairkit
from pairkit.app.application import columns_given
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout
from pairkit.commands import options as o
from pairkit.commands.options import app, examples


@app.command(
    epilog=examples(
        "pairs audit gis-dataset",
        "pairs audit WhereIsAI/github-issue-similarity",
        "pairs audit nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
)
def audit(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Look for leaks between splits, contradictions, repeats and empty texts. Exit code 3 if it leaks."""
    found = pairkit.audit(dataset, columns=columns_given(columns), labels=labels, label_range=label_range)
    if json:
        print_json(found.to_dict())
    else:
        splits, findings = found.tables()
        stdout.print(splits)
        stdout.print()
        stdout.print(findings)
    found.check()
    next_step("see what is in it", ["pairs", "report", dataset], quiet=quiet)


@app.command(
    epilog=examples(
        "pairs report gis-dataset",
        "pairs report pairs.tsv --out about-pairs --seed 7",
        "pairs report nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
)
def report(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            rich_help_panel="Output",
            help="The report's folder. [default: DATASET.report]",
        ),
    ] = None,
    seed: o.Seed = 42,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Describe a dataset: counts, lengths, overlap, what was dropped, samples; figures and a page to open."""
    names = columns_given(columns)
    made = pairkit.report(
        dataset, out, columns=names, labels=labels, label_range=label_range, seed=seed, progress=not quiet
    )
    if json:
        print_json({"out": str(made.out), "page": str(made.page), **made.counts})
        return
    stdout.print(made.table())
    next_step("open the page in a browser", str(made.page), quiet=quiet)


@app.command(
    epilog=examples("pairs show gis-dataset", "pairs show gis-dataset --row 3 --label 0 --svg pair.svg")
)
def show(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="NAME", help="train, validation or test. [default: the last]"),
    ] = None,
    row: Annotated[int, typer.Option("--row", metavar="N", help="Which pair, counted from 0.")] = 0,
    label: Annotated[
        int | None, typer.Option("--label", metavar="N", help="Count only pairs with this label.")
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", rich_help_panel="Output", help="Save a picture of it as SVG."),
    ] = None,
) -> None:
    """Show one pair side by side, with the words that both texts share marked."""
    names = columns_given(columns)
    pair = pairkit.show(
        dataset, split=split, row=row, label=label, columns=names, labels=labels, label_range=label_range
    )
    stdout.print(pair)
    if svg is not None:
        pair.save(svg)
