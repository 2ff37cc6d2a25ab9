"""`aoe push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import aoe_train
from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe push --model M --repo me/duplicate-issues --dry-run",
        "HF_TOKEN=… aoe push --model M --repo me/duplicate-issues",
    )
)
def push(
    *,
    model: Annotated[
        Path, typer.Option("--model", "-m", metavar="DIR", help="A model folder with README.md and run.json.")
    ],
    repo: Annotated[
        str,
        typer.Option(
            "--repo", metavar="OWNER/NAME", help="The repository on the Hub; created if it is missing."
        ),
    ],
    public: Annotated[
        bool, typer.Option("--public", help="Let everybody see it. [default: only you]")
    ] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="NAME", help="Branch to commit to. [default: main]")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be sent, and send nothing.")
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Send a model with its card to the Hugging Face Hub, in one commit. The token is HF_TOKEN."""
    pushed = aoe_train.push(model, repo=repo, public=public, revision=revision, dry_run=dry_run)
    if json:
        sizes = sum(pushed.files.values())
        print_json({"repo": repo, "url": pushed.url, "files": pushed.files, "bytes": sizes})
    elif pushed.url is None:
        stdout.print(pushed.table())
    else:
        stdout.print(pushed.url, markup=False)
    if pushed.url is not None:
        next_step(
            "use it from anywhere",
            ["aoe", "encode", "TEXTS.txt", "--model", repo, "--out", "vectors.npy"],
            quiet=quiet,
        )
