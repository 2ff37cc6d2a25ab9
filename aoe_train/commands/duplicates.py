"""`aoe duplicates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say


@app.command(
    epilog=examples(
        "aoe duplicates index",
        "aoe duplicates index --least 0.8 --out pairs.parquet",
        "aoe duplicates index --against new-index --json",
    )
)
def duplicates(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="What `aoe index` made.")],
    *,
    least: Annotated[
        float | None,
        o.RUN("--least", "The lowest cosine of a pair. [default: 0.9]", "X"),
    ] = None,
    against: Annotated[
        Path | None, o.INPUT("--against", "Look for the texts of this index instead of its own.", "INDEX")
    ] = None,
    neighbours: Annotated[
        int | None, o.RUN("--neighbours", "How many of each text to look at. [default: 50]", "N")
    ] = None,
    out: Annotated[
        Path | None, o.OUTPUT("--out -o", "Write all pairs with their rows, as .parquet.", "FILE")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find texts of an index that say nearly the same."""
    import aoe_train

    found = aoe_train.duplicates(
        index,
        least=least,
        against=against,
        neighbours=neighbours,
        progress=not quiet,
    )
    if out is not None:
        found.write(out)
    if json:
        print_json(found.to_dict())
        return
    stdout.print(found.table())
    groups = f" in {len(found.groups):,} groups" if found.within else ""
    more = f"; {found.full:,} texts may have more: raise --neighbours" if found.full else ""
    say(f"{len(found.pairs):,} pairs of {found.texts:,} texts{groups}{more}", quiet=quiet)
