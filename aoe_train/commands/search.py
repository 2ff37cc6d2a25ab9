"""`aoe search`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.app.result_table import ResultTable
from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say
from pairkit.system.files import check_free

if TYPE_CHECKING:
    from aoe_train import Hit

_MOST_BYTES = 8 << 20  # of a text on standard input
_SHOWN = 200  # characters of a text


@app.command(
    epilog=examples(
        'aoe search index "window is blank after resizing"',
        'aoe search index "E0277 in a loop" --top 5 --where state=open',
        'aoe search index "panics on save" --by words --json',
        "aoe search index - --before created_at=2015-05-15",
        "aoe search index --every --before created_at --top 20 --out hits.parquet",
    )
)
def search(
    index: Annotated[Path, typer.Argument(metavar="INDEX", help="What `aoe index` made.")],
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="What to search for; - reads it from stdin.")
    ] = None,
    *,
    every: Annotated[
        bool, o.INPUT("--every", "Search for every text of the index instead, and write all hits to --out.")
    ] = False,
    top: Annotated[int, o.OUTPUT("--top -n", "How many to show, of each text.", "N", min=1)] = 10,
    where: Annotated[
        list[str] | None,
        o.INPUT("--where", "Only rows with this value, such as state=open; repeatable.", "COLUMN=VALUE"),
    ] = None,
    before: Annotated[
        list[str] | None,
        o.INPUT(
            "--before",
            "Only rows with a smaller value, such as created_at=2015; with --every a column alone: than the"
            " text's own.",
            "COLUMN[=VALUE]",
        ),
    ] = None,
    by: Annotated[str, o.RUN("--by", "both, model or words.", "NAME")] = "both",
    weight: Annotated[
        float | None, o.RUN("--weight", "How much vectors count, from 0 to 1. [default: 0.65]", "X")
    ] = None,
    model: Annotated[
        str | None, o.MODEL("--model -m", "What made the index. [default: as it says]", "MODEL")
    ] = None,
    out: Annotated[Path | None, o.OUTPUT("--out -o", "Where --every writes, as .parquet.", "FILE")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find texts of an index by meaning and words."""
    import aoe_train

    if every != (text is None) or every != (out is not None):
        raise ConfigError("expected a text to search for, or --every and --out for all texts of the index")
    if every and out is not None:
        if where or len(before or []) > 1 or any("=" in name for name in before or []):
            raise ConfigError("--every: takes --before COLUMN once, and no --where")
        column = before[0] if before else None
        check_free(out)
        found = aoe_train.search_every(
            index, before=column, top=top, by=by, weight=weight, model=model, progress=not quiet
        )
        found.write(out)
        if json:
            print_json(found.to_dict())
        left = f"; {found.undated:,} rows without a value in {column} left out" if found.undated else ""
        say(f"{found.hits.height:,} hits of {found.texts:,} texts{left}", quiet=quiet or json)
        return
    hits = aoe_train.search(
        index,
        _read_stdin() if text == "-" else text or "",
        top=top,
        where=_conditions("--where", where or []),
        before=_conditions("--before", before or []),
        by=by,
        weight=weight,
        model=model,
    )
    if json:
        print_json({"hits": [{**hit.to_dict(), "text": hit.text} for hit in hits]})
    else:
        _show(hits)


def _show(hits: list[Hit]) -> None:
    name = hits[0].known[0] if hits else "row"
    table = ResultTable("score", "cosine", name, "text")
    for hit in hits:
        cosine = "" if hit.cosine is None else f"{hit.cosine:.3f}"
        known = one_line(str(hit.known[1]), _SHOWN)
        table.add_row(f"{hit.score:.3f}", cosine, known, one_line(hit.text, _SHOWN))
    stdout.print(table)


def _read_stdin() -> str:
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"standard input: more than {_MOST_BYTES >> 20} MiB; give a shorter text")
    return data.decode("utf-8", "replace")


def _conditions(flag: str, where: list[str]) -> dict[str, str]:
    found = {}
    for condition in where:
        name, mark, value = condition.partition("=")
        if not mark or not name:
            raise ConfigError(f"{flag} {one_line(condition)}: expected COLUMN=VALUE, such as state=open")
        found[name] = value
    return found
