"""`aoe figures`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say


@app.command(
    epilog=examples(
        "aoe figures --model minilm --data stsb-test.tsv --out figures",
        "aoe figures --model M --model M2 --data stsb-test.tsv --kind densities --out figures",
        "aoe figures --model M --data stsb-test.tsv --kind halves --zone cosine --above 0.9 --out figures",
        "aoe figures --model M --model M2 --kind curves --out figures",
    )
)
def figures(
    model: Annotated[
        list[str], typer.Option("--model", "-m", help="A model's folder, a hub id, or minilm; repeatable.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A folder of its own; figures that lie there are replaced.")
    ],
    *,
    data: Annotated[
        str | None,
        typer.Option("--data", "-d", help="Pairs with gold scores or labels: a folder, a file or a hub id."),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="test or dev, of a dataset. [default: test]")
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help="densities, halves, curves or all.")] = "all",
    saturation: Annotated[
        float, typer.Option("--saturation", help="densities: |cosine| above which a pair is saturated.")
    ] = 0.95,
    zone: Annotated[
        str,
        typer.Option(
            "--zone",
            help="halves: the pairs of the saturation zone by their gold score, as in the paper, by their"
            " |cosine|, or all pairs.",
        ),
    ] = "gold",
    above: Annotated[
        float,
        typer.Option("--above", help="halves: where the zone begins, as a share of the highest score."),
    ] = 0.95,
    most: Annotated[
        int, typer.Option("--most", min=5, help="halves: pairs to draw, a seeded choice if there are more.")
    ] = 2_000,
    perplexity: Annotated[float, typer.Option("--perplexity", help="halves: of t-SNE.")] = 30.0,
    seed: o.Seed = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Draw a model's figures as in the papers: PNG and SVG, and their numbers in figures.json.

    densities: cosines by gold score, a panel for each model. halves: real against imaginary halves of the
    vectors of the pairs in the saturation zone, by t-SNE and by distance, a figure for each model. curves:
    loss, its parts and the dev metric against steps, of models of `aoe train`.
    """
    from typing import cast

    from aoe_train._figures.make import Request, make_figures
    from aoe_train._figures.tsne import Tsne
    from aoe_train._figures.zone import Rule, Zone

    request = Request(
        model,
        data,
        split=split,
        kind=kind,
        saturation=saturation,
        zone=Zone(cast("Rule", zone), above, most),
        tsne=Tsne(perplexity, 42 if seed is None else seed),
    )
    record = make_figures(request, out, say=partial(say, quiet=quiet), quiet=quiet)
    if json:
        print_json({"out": str(out), **_summary(record)})
        return
    for file in record["files"]:
        stdout.print(str(out / file), markup=False)


def _summary(record: dict[str, Any]) -> dict[str, Any]:
    """What the figures state in words; their curves are in figures.json."""
    densities = record.get("densities", {"models": {}})["models"]
    halves, curves = record.get("halves", {}), record.get("curves", {})
    return {
        "files": record["files"],
        "densities": {
            name: {key: panel[key] for key in ("spearman", "saturated")} for name, panel in densities.items()
        },
        "halves": {
            name: {
                "pairs": len(found["numbers"]),
                "original": _averages(found["original"]),
                "plane": _averages(found["plane"]),
            }
            for name, found in halves.items()
        },
        "curves": {name: {"steps": int(found["loss"]["x"][-1])} for name, found in curves.items()},
    }


def _averages(distances: dict[str, Any]) -> dict[str, float]:
    return {
        "avg_re": distances["real"]["mean"],
        "avg_im": distances["imaginary"]["mean"],
        "imaginary_larger": distances["imaginary_larger"],
    }
