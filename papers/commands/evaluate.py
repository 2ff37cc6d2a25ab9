"""`python -m papers evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say
from papers.app import app, examples


@app.command(
    epilog=examples(
        "python -m papers evaluate --model minilm --suite transfer --data-dir data --markdown minilm.md",
        "python -m papers evaluate -m M --suite nli --task TaxiNLI --data-dir data",
    )
)
def evaluate(
    model: Annotated[str, Option("--model", "-m", help="As of `aoe evaluate`.", metavar="MODEL")],
    suite: Annotated[str, Option(help="sts, transfer, nli or retrieval.", metavar="NAME")],
    data_dir: Annotated[Path, Option(help="The folder with the test sets.", metavar="DIR")],
    *,
    task: Annotated[list[str] | None, Option(help="Only this task; repeatable.", metavar="NAME")] = None,
    split: Annotated[str, Option(help="test or dev.", metavar="NAME")] = "test",
    against: Annotated[
        str | None, Option(help="Another model, to test the difference.", metavar="MODEL")
    ] = None,
    resamples: Annotated[int, Option(help="Bootstrap resamples; 0: none.", metavar="N")] = 1000,
    cache: Annotated[bool, Option("--cache/--no-cache", help="Keep vectors on disk.")] = True,
    markdown: Annotated[
        Path | None, Option(help="Write the tables as Markdown, beside the papers' figures.", metavar="FILE")
    ] = None,
    json: Annotated[bool, Option("--json", help="End with one JSON object on stdout.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    """Evaluate a model on a suite of the papers' tables, beside the figures that they report."""
    from pairkit.system.files import write_text
    from papers import suites
    from papers.suites.evaluate import beside_published

    found, missing = suites.evaluate(
        model,
        suite,
        data_dir,
        tasks=task or (),
        split=split,
        against=against,
        resamples=resamples,
        cache=cache,
        progress=not quiet,
    )
    for name, reason in missing.items():
        say(f"left out {name}: {reason}", quiet=quiet or suite == "sts")
    if markdown is not None:
        write_text(markdown, beside_published(suite, found))
    if json:
        print_json(found.to_dict())
        return
    for one in found.tables():
        stdout.print(one)
