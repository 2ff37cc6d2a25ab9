"""`aoe export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe export --model M --out M-small --dtype bf16",
        "aoe export --model M --out M-onnx --format onnx",
        "aoe export --model M --out M-int8 --format onnx-int8 --data pairs.tsv",
        "aoe export --model M --out M-4 --layers 4",
        "aoe export --model M --out M-half --soup 0.5",
    )
)
def export(
    *,
    model: o.Model,
    out: Annotated[Path, o.OUTPUT("--out -o", "A folder that does not exist yet.", "DIR")],
    form: Annotated[
        str,
        o.OUTPUT("--format", "sentence-transformers, onnx or onnx-int8.", "NAME"),
    ] = "sentence-transformers",
    dtype: Annotated[str, o.OUTPUT("--dtype", "Store weights as fp32, bf16 or fp16.", "NAME")] = "fp32",
    layers: o.Layers = None,
    soup: Annotated[
        float | None,
        o.MODEL("--soup", "Share of the trained weights; the rest is the backbone's. [default: 1]", "X"),
    ] = None,
    backbone: Annotated[
        str | None, o.MODEL("--backbone", "What it was trained from. [default: as its record says]", "MODEL")
    ] = None,
    data: Annotated[
        str | None,
        o.INPUT(
            "--data -d",
            "Pairs to measure int8's loss on: a folder, a file or a Hub id. [default: built-in sentences]",
            "DATA",
        ),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a model as a folder that needs no other files. LoRA is merged, and the vectors are compared."""
    import aoe_train

    done = aoe_train.export(
        model,
        out=out,
        format=form,
        dtype=dtype,
        layers=layers,
        soup=soup,
        backbone=backbone,
        data=data,
        progress=not quiet,
    )
    if json:
        print_json(done.to_dict())
        return
    stdout.print(str(done.out), markup=False)
    say(
        f"vectors differ by at most {done.difference:.0e} of their length; "
        f"weights stored as {done.dtype} change them by {done.rounding:.0e}",
        quiet=quiet,
    )
    if done.loss:
        say(str(done.loss), quiet=quiet)
    if done.needs_toolkit:
        say(f"its readers need aoe-toolkit and trust_remote_code=True: {done.needs_toolkit}", quiet=quiet)
    next_step("send it to the Hub", ["aoe", "push", "--model", done.out, "--repo", "OWNER/NAME"], quiet=quiet)
