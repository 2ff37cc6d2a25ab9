"""`aoe search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.errors import ConfigError
from pairkit.printable import one_line
from pairkit.result_table import ResultTable
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json

_SHOWN = 200  # characters of a text
_NAMES = ("id", "number", "key", "url")  # columns that tell rows apart, the first that there is


@app.command(
    epilog=examples(
        'aoe search index "window is blank after resizing"',
        'aoe search index "E0277 in a loop" --top 5 --where state=open',
        'aoe search index "panics on save" --by words --json',
    )
)
def search(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="What `aoe index` made.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to search for.")],
    *,
    top: Annotated[int, o.OUTPUT("--top -n", "How many to show.", "N", min=1)] = 10,
    where: Annotated[
        list[str] | None,
        o.INPUT("--where", "Only rows with this value, such as state=open; repeatable.", "COLUMN=VALUE"),
    ] = None,
    by: Annotated[str, o.RUN("--by", "both, model or words.", "NAME")] = "both",
    weight: Annotated[
        float | None, o.RUN("--weight", "How much vectors count, from 0 to 1. [default: 0.65]", "X")
    ] = None,
    model: Annotated[
        str | None, o.MODEL("--model -m", "What made the index. [default: as it says]", "MODEL")
    ] = None,
    json: o.Json = False,
) -> None:
    """Find texts of an index by meaning and words."""
    import aoe_train

    hits = aoe_train.search(
        index, text, top=top, where=_conditions(where or []), by=by, weight=weight, model=model
    )
    if json:
        print_json({"hits": [hit.to_dict() for hit in hits]})
        return
    name = next((name for name in _NAMES if hits and name in hits[0].row), "row")
    likely = any(hit.probability is not None for hit in hits)
    table = ResultTable("score", "cosine", *(["probability"] if likely else []), name, "text")
    for hit in hits:
        cosine = "" if hit.cosine is None else f"{hit.cosine:.3f}"
        known = one_line(str(hit.row.get(name, hit.place)), _SHOWN)
        chance = [f"{hit.probability:.2f}"] if hit.probability is not None else []
        table.add_row(f"{hit.score:.3f}", cosine, *chance, known, one_line(hit.text, _SHOWN))
    stdout.print(table)


def _conditions(where: list[str]) -> dict[str, str]:
    found = {}
    for condition in where:
        name, mark, value = condition.partition("=")
        if not mark or not name:
            raise ConfigError(f"--where {one_line(condition)}: expected COLUMN=VALUE, such as state=open")
        found[name] = value
    return found
