"""The command of `gis` that lists older issues which an issue may repeat: suggest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import gis_builder
from gis_builder.commands import options as o
from gis_builder.commands.app import app, examples
from pairkit.app.errors import ConfigError
from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say

_BACKTEST = "Backtest"


@app.command(
    epilog=examples(
        "gis suggest --repo owner/name --issue 123 --index index",
        "gis suggest --repo owner/name --title 'Crash on save' --body-file body.md --index index",
        "gis suggest --backtest hits.parquet --work gis.work",
    )
)
def suggest(
    *,
    repo: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="The repository.")] = None,
    issue: Annotated[
        int | None, typer.Option(metavar="N", help="The number of an issue of the crawl.", min=1)
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The title of a new text, instead.")
    ] = None,
    body_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its body; - reads it from stdin.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="INDEX", help="What `aoe index` made of `gis render`'s table.")
    ] = None,
    work: o.WorkOnly = Path("gis.work"),
    top: Annotated[int, typer.Option(metavar="N", help="Suggestions at most.", min=1, max=50)] = 5,
    backtest: Annotated[
        Path | None,
        typer.Option(
            metavar="HITS",
            help="Measure R@k on the tracker's past: what `aoe search --every --before created_at` found.",
            rich_help_panel=_BACKTEST,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Judge only issues opened from then on, such as 2015-01-01T00:00:00Z.",
            rich_help_panel=_BACKTEST,
        ),
    ] = None,
    relations: o.Relations = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """List older issues that an issue may repeat, or measure on the past how often such a list is right."""
    found: gis_builder.Suggested | gis_builder.Backtested
    if backtest is not None:
        found = gis_builder.backtest(
            backtest, work, since=since, relations=relations, config=config, settings=sets
        )
        for line in found.notes():
            say(line, quiet=quiet)
    elif repo is None or index is None:
        raise ConfigError("expected --repo and --index with --issue N or --title TEXT; or --backtest HITS")
    else:
        body = "" if body_file is None else _read_body(body_file)
        found = gis_builder.suggest(repo, issue, index=index, work=work, title=title, body=body, top=top)
        if not found.suggestions:
            say(f"{found.issue}: the index has no older issue of its repository", quiet=quiet)
    if json:
        print_json(found.to_dict())
    else:
        stdout.print(found.table())


def _read_body(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: can't be read ({error.strerror}); give another file") from error
    return data.decode("utf-8", "replace")
