"""`aoe distill`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe distill --model minilm --data sentences.txt --out static",
        "aoe distill -m M --data corpus.parquet --dim 128 --out static-128",
    )
)
def distill(
    data: Annotated[str, o.INPUT("--data -d", "Texts without labels: a file, a folder or a Hub id.", "DATA")],
    out: Annotated[Path, o.OUTPUT("--out -o", "A folder that does not exist yet.", "DIR")],
    *,
    model: o.Model,
    dim: Annotated[
        int | None, o.OUTPUT("--dim", "Numbers of a vector. [default: as many as the model has]", "N")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a static model of a model: a vector for each token, fitted to the model's vectors of texts."""
    import aoe_train

    done = aoe_train.distill(model, data, out=out, dim=dim, progress=not quiet)
    if json:
        print_json(done.to_dict())
        return
    stdout.print(str(done.out), markup=False)
    say(
        f"{done.tokens:,} tokens, {done.seen:,} of them in {done.texts:,} texts; on {done.held_out:,} others"
        f" its vectors have a mean cosine of {done.agreement:.3f} with the model's",
        quiet=quiet,
    )
    next_step("score it", ["aoe", "evaluate", done.out, "--data", "PAIRS"], quiet=quiet)
