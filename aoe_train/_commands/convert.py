"""`aoe convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json


@app.command(epilog=examples("aoe convert rannet-base --vocab rannet-base/vocab.txt --out ran --heads 12"))
def convert(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="The published TensorFlow checkpoint: folder or path."),
    ],
    *,
    vocab: Annotated[Path, typer.Option("--vocab", help="Its vocab.txt, or a tokenizer's folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's folder.")],
    heads: Annotated[
        int | None, typer.Option("--heads", help="Attention heads. [default: what its config.json says]")
    ] = None,
    cased: Annotated[bool, typer.Option("--cased", help="The vocabulary tells cases apart.")] = False,
    json: Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")] = False,
) -> None:
    """Turn a published RAN checkpoint into a model folder, which `aoe train --backbone` takes."""
    from aoe_train._backbones.ran.convert import convert_checkpoint
    from aoe_train._backbones.ran.tokenizer import load_tokenizer
    from pairkit.errors import ConfigError
    from pairkit.files import whole_folder

    if out.exists():
        raise ConfigError(f"{out}: exists; give another folder or remove it")
    tokenizer = load_tokenizer(vocab, lowercase=not cased)
    model = convert_checkpoint(checkpoint, heads=heads)
    if len(tokenizer) > model.config.vocab_size:
        raise ConfigError(
            f"{vocab}: {len(tokenizer)} tokens; the checkpoint has {model.config.vocab_size}: give its own"
        )
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    parameters = sum(weight.numel() for weight in model.parameters())
    if json:
        print_json({"out": str(out), "parameters": parameters, "layers": model.config.num_hidden_layers})
    else:
        stdout.print(f"{out}: {parameters:,} parameters", markup=False)
