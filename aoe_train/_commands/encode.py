"""`aoe encode`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from aoe_train._commands.models import Model, load_encoder
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, progress, say


@app.command(
    epilog=examples(
        "aoe encode texts.txt --model M --out vectors.npy",
        "aoe encode issues.parquet --model M --out issues-vectors.parquet --text-column body",
        "zcat texts.gz | aoe encode - --model M --out vectors.npy",
    )
)
def encode(
    texts: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="txt (a text a line), csv, tsv or jsonl, each also as .gz, or parquet; - for lines from a"
            " pipe, which are copied beside the output first.",
        ),
    ],
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", "-o", help=".npy, or .parquet with the input's columns and `vector`.")
    ],
    *,
    text_column: Annotated[
        str | None, typer.Option("--text-column", help="A table's column. [default: text, or the only one]")
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option("--normalize/--no-normalize", help="Vectors of length 1. [default: as the model says]"),
    ] = None,
    precision: o.Precision = None,
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", min=1, help="Tokens at once; less needs less memory.")
    ] = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write the vector of each text, in order, however many. Kill it and run it again to go on.

    To go on with a pipe, send the same text again: what is done is not encoded twice.
    """
    from aoe_train._encode import encode_file

    encoder = load_encoder(model, precision)
    settings = {
        "model": encoder.identity(),
        "normalize": encoder.settings.normalize if normalize is None else normalize,
        "batch tokens": batch_tokens,
    }
    with progress(quiet=quiet) as bar:
        task = bar.add_task("encode", total=None, note="")
        done = encode_file(
            texts,
            out,
            partial(encoder.encode, normalize=normalize, batch_tokens=batch_tokens),
            encoder.dim,
            settings,
            text_column=text_column,
            fresh=fresh,
            advance=lambda count, total: bar.update(task, completed=count, total=total),
        )
    if json:
        print_json(done.to_dict())
        return
    stdout.print(str(done.out), markup=False)
    went_on = f", {done.resumed:,} of them done before" if done.resumed else ""
    say(f"{done.texts:,} texts{went_on}; {done.texts_per_s:,.1f} a second", quiet=quiet)
