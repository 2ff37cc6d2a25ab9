"""`aoe convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout


@app.command(epilog=examples("aoe convert rannet-base --vocab rannet-base/vocab.txt --out ran --heads 12"))
def convert(
    checkpoint: Annotated[
        Path,
        typer.Argument(metavar="CHECKPOINT", help="The published TensorFlow checkpoint, a folder or a path."),
    ],
    *,
    vocab: Annotated[Path, o.INPUT("--vocab", "Its vocab.txt, or a tokenizer's folder.", "PATH")],
    out: o.Out,
    heads: Annotated[
        int | None, o.MODEL("--heads", "Attention heads. [default: as in its config.json]", "N")
    ] = None,
    cased: Annotated[bool, o.MODEL("--cased", "The vocabulary is cased.")] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Turn a published RAN checkpoint into a model folder for `aoe train --backbone`."""
    import aoe_train

    made = aoe_train.convert(checkpoint, vocab=vocab, out=out, heads=heads, cased=cased)
    if json:
        print_json({"out": str(made.out), "parameters": made.parameters, "layers": made.layers})
        return
    stdout.print(f"{made.out}: {made.parameters:,} parameters", markup=False)
    next_step(
        "train it on pairs",
        ["aoe", "train", "--data", "PAIRS", "--backbone", made.out, "--out", "MODEL"],
        quiet=quiet,
    )
