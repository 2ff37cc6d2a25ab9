"""`aoe pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say


@app.command(
    epilog=examples(
        "aoe pretrain --texts texts.txt --tokenizer vocab.txt --out ran",
        "aoe pretrain --texts a.txt.gz --texts b.parquet --init-from bert-folder --out ran --steps 20000",
    )
)
def pretrain(
    texts: Annotated[
        list[Path],
        typer.Option("--texts", help="One text a line, or a table with a text column; repeatable."),
    ],
    out: o.Out,
    *,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", help="A tokenizer's folder, or a WordPiece vocab.txt.")
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option("--init-from", help="An encoder's folder, to begin with its embeddings and tokenizer."),
    ] = None,
    epochs: o.Epochs = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps to train, instead of epochs.")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Sequences a process. [default: 32]")
    ] = None,
    lr: o.Lr = None,
    precision: o.Precision = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Pre-train a Recurrent Attention Network on plain texts (whole-word MLM). Run it again to go on."""
    from aoe_train._pretrain_settings import PretrainSettings
    from pairkit.config import load_settings

    settings = load_settings(
        PretrainSettings,
        file=config,
        assignments=sets or (),
        flags={
            "texts": texts,
            "out": out,
            "tokenizer": tokenizer,
            "init_from": init_from,
            "epochs": epochs,
            "steps": steps,
            "batch_size": batch_size,
            "lr": lr,
            "precision": precision,
            "seed": seed,
            "fresh": fresh or None,
        },
    )
    from aoe_train import _pretrain as use_case
    from aoe_train._trainer.gather import is_main, leave_group

    result = use_case.pretrain(settings, quiet=quiet)
    if is_main():
        _show(result, json=json, quiet=quiet)
    leave_group()


def _show(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        print_json(result)
    else:
        stdout.print(result["out"], markup=False)
        say(f"loss {result['loss_first']:.3f} at first, {result['loss_last']:.3f} at last", quiet=quiet)
