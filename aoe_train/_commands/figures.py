"""`aoe figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout

HALVES = "Halves"


@app.command(
    epilog=examples(
        "aoe figures --model minilm --data stsb-test.tsv --out figures",
        "aoe figures -m M -m M2 --data stsb-test.tsv --kind densities --out figures",
        "aoe figures -m M -d stsb-test.tsv --kind halves --zone cosine --above 0.9 -o figures",
        "aoe figures -m M -m M2 --kind curves --out figures",
    )
)
def figures(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="A folder, a hub id, or minilm; repeatable.",
            rich_help_panel=o.INPUT,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Of its own; figures that lie there are replaced.",
            rich_help_panel=o.OUTPUT,
        ),
    ],
    *,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            metavar="DATA",
            help="Pairs with scores or labels: a folder, a file, a hub id.",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="NAME",
            help="test or dev, of a dataset. [default: test]",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind", metavar="KIND", help="densities, halves, curves or all.", rich_help_panel=o.OUTPUT
        ),
    ] = "all",
    saturation: Annotated[
        float,
        typer.Option(
            "--saturation",
            metavar="X",
            help="densities: |cosine| above which a pair is saturated.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = 0.95,
    zone: Annotated[
        str,
        typer.Option(
            "--zone",
            metavar="ZONE",
            help="Pairs by gold score (as in the paper), by cosine, or all.",
            rich_help_panel=HALVES,
        ),
    ] = "gold",
    above: Annotated[
        float,
        typer.Option(
            "--above",
            metavar="X",
            help="Where the zone begins, as a share of the highest.",
            rich_help_panel=HALVES,
        ),
    ] = 0.95,
    most: Annotated[
        int,
        typer.Option(
            "--most",
            metavar="N",
            min=5,
            help="Pairs to draw; of more, a seeded choice.",
            rich_help_panel=HALVES,
        ),
    ] = 2_000,
    perplexity: Annotated[
        float, typer.Option("--perplexity", metavar="X", help="Of t-SNE.", rich_help_panel=HALVES)
    ] = 30.0,
    seed: o.Seed = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Draw models' figures as in the papers: PNG and SVG, and their numbers in figures.json.

    densities: cosines by gold score, a panel for each model. halves: real against imaginary halves of the
    vectors of the pairs in the saturation zone, by t-SNE and by distance. curves: loss, its parts and the dev
    metric against steps, of models of `aoe train`. What can't be drawn is left out, and told.
    """
    import aoe_train

    drawn = aoe_train.figures(
        model,
        out=out,
        data=data,
        split=split,
        kind=kind,
        saturation=saturation,
        zone=zone,
        above=above,
        most=most,
        perplexity=perplexity,
        seed=42 if seed is None else seed,
        progress=not quiet,
    )
    if json:
        print_json(drawn.to_dict())
        return
    for path in drawn.files:
        stdout.print(str(path), markup=False)
    next_step("see the numbers", ["python", "-m", "json.tool", out / "figures.json"], quiet=quiet)
