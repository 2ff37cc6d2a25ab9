"""`aoe export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from aoe_train._export.export import Dtype, Exported, Format


@app.command(
    epilog=examples(
        "aoe export --model M --out M-small --dtype bf16",
        "aoe export --model M --out M-onnx --format onnx",
    )
)
def export(
    *,
    model: Annotated[str, typer.Option("--model", "-m", help="A model folder, a hub id, or minilm.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder that doesn't exist yet.")],
    form: Annotated[
        str, typer.Option("--format", help="sentence-transformers or onnx.")
    ] = "sentence-transformers",
    dtype: Annotated[str, typer.Option("--dtype", help="Store weights as fp32, bf16 or fp16.")] = "fp32",
    json: Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")] = False,
) -> None:
    """Write a model as a folder that stands by itself, LoRA merged, checked to give the same vectors."""
    from aoe_train._backbones.load import find_folder
    from aoe_train._encoder import Encoder
    from aoe_train._export.export import check, export

    check(out, form, dtype)
    encoder = Encoder.load(model, device="cpu", precision="fp32")
    done = export(
        encoder, out, source=find_folder(model), form=cast("Format", form), dtype=cast("Dtype", dtype)
    )
    if json:
        print_json(_result(done))
        return
    stdout.print(str(done.out), markup=False)
    say(
        f"same vectors to {done.difference:.0e} of their length; "
        f"storing as {done.dtype} changed {done.rounding:.0e}"
    )
    if done.needs_toolkit:
        say(f"its readers need aoe-toolkit and trust_remote_code=True: {done.needs_toolkit}")


def _result(done: Exported) -> dict[str, object]:
    from dataclasses import asdict

    return {**asdict(done), "out": str(done.out)}
