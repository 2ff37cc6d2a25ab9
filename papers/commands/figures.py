"""`python -m papers figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say
from papers.app import app, examples


@app.command(
    epilog=examples(
        "python -m papers figures --model minilm --data stsb-test.tsv --out figures",
        "python -m papers figures -m M -d stsb-test.tsv --kind halves --zone cosine --above 0.9 -o figures",
        "python -m papers figures -m M -m M2 --kind curves --out figures",
    )
)
def figures(
    model: Annotated[list[str], Option("--model", "-m", help="As of `aoe encode`.", metavar="MODEL")],
    out: Annotated[
        Path,
        Option("--out", "-o", help="Their folder; figures in it are replaced.", metavar="DIR"),
    ],
    *,
    data: Annotated[
        str | None,
        Option("--data", "-d", help="Pairs with scores; curves need none.", metavar="DATA"),
    ] = None,
    split: Annotated[
        str | None, Option(help="test or dev, of a dataset. [default: test]", metavar="NAME")
    ] = None,
    kind: Annotated[str, Option(help="densities, halves, curves or all.", metavar="KIND")] = "all",
    saturation: Annotated[
        float, Option(help="densities: the |cosine| above which a pair is saturated.", metavar="X")
    ] = 0.95,
    zone: Annotated[
        str, Option(help="halves: pairs by gold score (as in the paper), cosine, or all.", metavar="ZONE")
    ] = "gold",
    above: Annotated[
        float, Option(help="halves: where the zone begins, as a share of the highest value.", metavar="X")
    ] = 0.95,
    most: Annotated[int, Option(help="halves: pairs to draw, chosen by --seed.", metavar="N", min=5)] = 2_000,
    perplexity: Annotated[float, Option(help="halves: the perplexity of t-SNE.", metavar="X")] = 30.0,
    seed: Annotated[int, Option(help="Decides every random choice.", metavar="N")] = 42,
    json: Annotated[bool, Option("--json", help="End with the files as a JSON object on stdout.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Draw models' figures as in the papers: PNG and SVG, and their numbers in figures.json.

    densities: the cosines by gold score, a panel for each model. halves: the real against the imaginary
    halves of the vectors of pairs in the saturation zone, by t-SNE and by distance. curves: the loss, its
    parts and the dev metric by step, of models that `aoe train` made. What can't be drawn is left out, with a
    note.
    """
    from papers.figures.halves import Zone
    from papers.figures.make import Request, make_figures

    request = Request(model, data, split, kind, saturation, Zone(zone, above, most, perplexity, seed))
    drawn = make_figures(request, out, lambda words: say(words, quiet=quiet))
    if json:
        print_json({"out": str(out), "files": drawn["files"], "left_out": drawn["left_out"]})
        return
    for name in drawn["files"]:
        stdout.print(str(out / name), markup=False)
