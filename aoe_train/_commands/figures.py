"""`aoe figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.application import columns_given
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout

HALVES = o.Group("Halves")


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
        list[str], o.INPUT("--model -m", "A folder, a Hub id, minilm or smollm2; repeatable.", "MODEL")
    ],
    out: Annotated[Path, o.OUTPUT("--out -o", "The folder of the figures; those in it are replaced.", "DIR")],
    *,
    data: Annotated[
        str | None, o.INPUT("--data -d", "Pairs with scores or labels: a folder, a file or a Hub id.", "DATA")
    ] = None,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    split: Annotated[
        str | None, o.INPUT("--split", "test or dev, of a dataset. [default: test]", "NAME")
    ] = None,
    kind: Annotated[str, o.OUTPUT("--kind", "densities, halves, curves or all.", "KIND")] = "all",
    saturation: Annotated[
        float, o.OUTPUT("--saturation", "densities: the |cosine| above which a pair is saturated.", "X")
    ] = 0.95,
    zone: Annotated[
        str, HALVES("--zone", "Pairs by gold score (as in the paper), by cosine, or all.", "ZONE")
    ] = "gold",
    above: Annotated[
        float, HALVES("--above", "Where the zone begins, as a share of the highest value.", "X")
    ] = 0.95,
    most: Annotated[int, HALVES("--most", "Draw at most N pairs, chosen by --seed.", "N", min=5)] = 2_000,
    perplexity: Annotated[float, HALVES("--perplexity", "The perplexity of t-SNE.", "X")] = 30.0,
    seed: o.Seed = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Draw models' figures as in the papers: PNG and SVG, and their numbers in figures.json.

    densities: the cosines by gold score, a panel for each model. halves: the real against the imaginary
    halves of the vectors of pairs in the saturation zone, by t-SNE and by distance. curves: the loss, its
    parts and the dev metric by step, of models that `aoe train` made. What can't be drawn is left out, with a
    note.
    """
    import aoe_train

    drawn = aoe_train.figures(
        model,
        out=out,
        data=data,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
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
