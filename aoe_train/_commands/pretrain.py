"""`aoe pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import next_step, print_json, say
from pairkit.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe pretrain --texts texts.txt --tokenizer vocab.txt --out ran",
        "aoe pretrain --texts a.txt.gz --texts b.parquet --init-from bert-folder -o ran --steps 20000",
    )
)
def pretrain(
    texts: Annotated[
        list[Path],
        o.INPUT("--texts", "One text per line, or a table with a text column; repeatable.", "FILE"),
    ],
    out: o.Out,
    *,
    tokenizer: Annotated[
        Path | None, o.MODEL("--tokenizer", "A folder, or a WordPiece vocab.txt.", "PATH")
    ] = None,
    init_from: Annotated[
        Path | None,
        o.MODEL("--init-from", "An encoder whose embeddings and tokenizer it begins with.", "DIR"),
    ] = None,
    epochs: o.Epochs = None,
    steps: Annotated[int | None, o.TRAINING("--steps", "Steps to train, instead of epochs.", "N")] = None,
    batch_size: o.BatchSize = None,
    lr: Annotated[float | None, o.TRAINING("--lr", "Highest learning rate. [default: 1e-3]", "X")] = None,
    precision: o.Precision = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Pre-train a Recurrent Attention Network on plain texts (whole-word MLM). Run it again to continue."""
    import aoe_train

    run = aoe_train.pretrain(
        texts,
        out=out,
        tokenizer=tokenizer,
        init_from=init_from,
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        lr=lr,
        precision=precision,
        seed=seed,
        config=config,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    if not run.is_main:
        return
    if json:
        print_json(run.to_dict())
        return
    stdout.print(str(run.out), markup=False)
    say(f"loss: {run.loss_first:.3f} at the start, {run.loss_last:.3f} at the end", quiet=quiet)
    next_step(
        "train it on pairs",
        ["aoe", "train", "--data", "PAIRS", "--backbone", run.out, "--out", "MODEL"],
        quiet=quiet,
    )
