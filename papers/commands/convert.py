"""`python -m papers convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pairkit.app.terminal import next_step
from pairkit.app.terminal import out as stdout
from papers.app import app, examples


@app.command(
    epilog=examples("python -m papers convert rannet-base --vocab rannet-base/vocab.txt --out ran --heads 12")
)
def convert(
    checkpoint: Annotated[Path, Argument(metavar="CHECKPOINT", help="TensorFlow's, a folder or a path.")],
    *,
    vocab: Annotated[Path, Option(help="Its vocab.txt, or a tokenizer's folder.", metavar="PATH")],
    out: Annotated[Path, Option("--out", "-o", help="The model's folder.", metavar="DIR")],
    heads: Annotated[
        int | None, Option(help="Attention heads. [default: as in its config.json]", metavar="N")
    ] = None,
    cased: Annotated[bool, Option("--cased", help="The vocabulary is cased.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Turn a published RAN checkpoint into a model folder for `aoe train --backbone`."""
    from papers.ran.convert import convert as run

    model = run(checkpoint, vocab, out, heads=heads, cased=cased)
    parameters = sum(weight.numel() for weight in model.parameters())
    stdout.print(f"{out}: {parameters:,} parameters", markup=False)
    next_step(
        "train it on pairs",
        ["aoe", "train", "--data", "PAIRS", "--backbone", out, "--out", "MODEL"],
        quiet=quiet,
    )
