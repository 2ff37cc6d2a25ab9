"""The command of `gis` that makes a dataset of all repositories: archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gis_builder
from gis_builder.commands import options as o
from gis_builder.commands.app import app, examples, show_built, tell_to_train

_TASKS = "Tasks"


@app.command(
    epilog=examples(
        "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-2015",
        "gis archive --hours 2015-01-01..2024-12-31 --source gharchive --out all"
        " --set limits.per_repo_max=500",
        "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-2015 --top-up",
        "gis archive --hours 2015-01-01..2024-12-31 -s gharchive -o all --engine ray --address 10.0.0.1:6379",
    )
)
def archive(
    hours: Annotated[
        str,
        typer.Option("--hours", metavar="A..B", help="The first and the last day, or hour of a day, in UTC."),
    ],
    source: Annotated[
        Path,
        typer.Option(
            *("--source", "-s"),
            metavar="DIR",
            help="The folder with the archive's files, YYYY-MM-DD-H.json.gz.",
        ),
    ],
    *,
    out: o.Out = Path("gis-archive"),
    work: Annotated[
        Path | None,
        typer.Option(
            *("--work", "-w"), metavar="DIR", help="The folder for results of tasks. [default: OUT.work]"
        ),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What stays out: owner/name, owner/*, owner/name#12 or @login, one a line."
        ),
    ] = None,
    top_up: Annotated[
        bool, typer.Option("--top-up", help="Ask GitHub for originals that are not in these hours.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes. [default: the cores]", rich_help_panel=_TASKS),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="local, or ray for a cluster.", rich_help_panel=_TASKS),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The Ray cluster's, which ray start prints.", rich_help_panel=_TASKS
        ),
    ] = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a dataset of all public repositories from hours of GH Archive. Run it again to continue.

    GitHub is asked for nothing without --top-up, which takes a token from GITHUB_TOKEN. With another hour or
    other settings, the same --work saves everything that they have in common.
    """
    built = gis_builder.archive(
        hours,
        source,
        out,
        work=work,
        exclude=exclude,
        top_up=top_up,
        workers=workers,
        engine=engine,
        address=address,
        seed=seed,
        config=config,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    show_built(built, as_json=json, quiet=quiet)
    tell_to_train(built, quiet=json or quiet)
