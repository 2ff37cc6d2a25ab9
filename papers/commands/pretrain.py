"""`python -m papers pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout
from papers.app import app, examples


@app.command(
    epilog=examples(
        "python -m papers pretrain --texts texts.txt --tokenizer vocab.txt --out ran",
        "python -m papers pretrain --texts a.txt.gz --init-from bert -o ran --set steps=20000",
    )
)
def pretrain(
    texts: Annotated[
        list[Path],
        Option(help="One text per line, or a table with a text column; repeatable.", metavar="FILE"),
    ],
    out: Annotated[Path, Option("--out", "-o", help="The model's folder.", metavar="DIR")],
    *,
    tokenizer: Annotated[
        Path | None, Option(help="A tokenizer's folder, or a WordPiece vocab.txt.", metavar="PATH")
    ] = None,
    init_from: Annotated[
        Path | None, Option(help="An encoder to begin with its embeddings and tokenizer.", metavar="DIR")
    ] = None,
    config: Annotated[Path | None, Option("--config", "-c", help="Settings in TOML.", metavar="FILE")] = None,
    sets: Annotated[
        list[str] | None,
        Option(
            "--set", help="One setting, such as lr=1e-3 or sizes.dim=384; repeatable.", metavar="KEY=VALUE"
        ),
    ] = None,
    fresh: Annotated[bool, Option("--fresh", help="Begin anew; replace what another run left.")] = False,
    json: Annotated[bool, Option("--json", help="End with one JSON object on stdout.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    """Pre-train a Recurrent Attention Network on plain texts (whole-word MLM). Run it again to continue.

    `papers/ran/settings.py` lists all settings.
    """
    from pairkit.app.settings import merge
    from papers.ran.pretrain import pretrain as run
    from papers.ran.settings import PretrainSettings

    given = {
        "texts": texts,
        "out": out,
        "tokenizer": tokenizer,
        "init_from": init_from,
        "fresh": fresh or None,
    }
    settings = merge(PretrainSettings, {name: name for name in given}, given, config=config, settings=sets)
    found = run(settings, progress=not quiet)
    if json:
        print_json(found)
        return
    stdout.print(str(out), markup=False)
    say(f"loss: {found['loss_first']:.3f} at the start, {found['loss_last']:.3f} at the end", quiet=quiet)
    next_step(
        "train it on pairs",
        ["aoe", "train", "--data", "PAIRS", "--backbone", out, "--out", "MODEL"],
        quiet=quiet,
    )
