"""`aoe push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json


@app.command(
    epilog=examples(
        "aoe push --model M --repo me/duplicate-issues --dry-run",
        "HF_TOKEN=… aoe push --model M --repo me/duplicate-issues --private",
    )
)
def push(
    *,
    model: Annotated[Path, typer.Option("--model", "-m", help="A model folder with README.md and run.json.")],
    repo: Annotated[str, typer.Option("--repo", help="owner/name on the hub; created unless it exists.")],
    private: Annotated[
        bool, typer.Option("--private", help="Only you see a repository created here.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", help="Branch to commit to. [default: main]")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be sent, and send nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")] = False,
) -> None:
    """Send a model folder to the Hugging Face hub, in one commit."""
    from aoe_train._export.hub import listing
    from aoe_train._export.hub import push as send

    files = listing(model)
    url = None if dry_run else send(model, repo, private=private, revision=revision)
    if json:
        print_json({"repo": repo, "url": url, "files": files, "bytes": sum(files.values())})
        return
    for name, size in files.items() if dry_run else ():
        stdout.print(f"{size:>13,}  {name}", markup=False)
    stdout.print(url or f"{sum(files.values()):>13,}  bytes to {repo}", markup=False)
