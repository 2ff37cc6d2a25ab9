"""The command of `gis` that makes a dataset of all repositories: archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gis_builder
from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples, show_built, tell_to_train
from pairkit.terminal import print_json, say

_TASKS = "Tasks"


@app.command(
    epilog=examples(
        "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-2015",
        "gis archive --hours 2015-01-01..2015-01-31 --source https://data.gharchive.org --out gis-2015-01",
        "gis archive --hours 2015-01-01..2024-12-31 --source gharchive --out all --per-repo-max 500",
        "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-2015 --top-up",
        "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-rust --language Rust,C++",
        "gis archive --hours 2015-01-01..2024-12-31 --source gharchive --out all --shard 2/8",
        "gis archive --hours 2015-01-01..2024-12-31 -s https://data.gharchive.org -w s3://bucket/all",
        "gis archive --hours 2015-01-01..2024-12-31 -s gharchive -o all --engine ray --address 10.0.0.1:6379",
    )
)
def archive(
    hours: Annotated[
        str,
        typer.Option("--hours", metavar="A..B", help="The first and the last day, or hour of a day, in UTC."),
    ],
    source: Annotated[
        str,
        typer.Option(
            *("--source", "-s"),
            metavar="DIR|URL",
            help="The archive's files, YYYY-MM-DD-H.json.gz: a folder, or https://data.gharchive.org.",
        ),
    ],
    *,
    out: o.Out = Path("gis-archive"),
    work: Annotated[
        str | None,
        typer.Option(
            *("--work", "-w"),
            metavar="DIR|URL",
            help="What the tasks make: a folder, or s3://bucket/folder. [default: OUT.work]",
        ),
    ] = None,
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What stays out: owner/name, owner/*, owner/name#12 or @login, one a line."
        ),
    ] = None,
    min_closed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Closed issues that a repository has at least. [default: 1]"),
    ] = None,
    per_repo_max: Annotated[
        int | None, typer.Option(metavar="N", help="Most positives of one repository. [default: no limit]")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Repositories mostly written in these programming languages: Rust,C++. [default: all]",
        ),
    ] = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Allow hours that lack events: those after 2025-05-23.")
    ] = False,
    top_up: Annotated[
        bool, typer.Option("--top-up", help="Ask GitHub for originals that are not in these hours.")
    ] = False,
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    parallel: Annotated[
        int,
        typer.Option(
            metavar="N", help="Connections at once to a server as --source.", rich_help_panel=_TASKS
        ),
    ] = 4,
    keep_hours: Annotated[
        bool,
        typer.Option(
            "--keep-hours", help="Keep hours from a server in WORK/downloaded.", rich_help_panel=_TASKS
        ),
    ] = False,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="local, or ray for a cluster.", rich_help_panel=_TASKS),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The Ray cluster's, as ray start says.", rich_help_panel=_TASKS
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes. [default: the cores]", rich_help_panel=_TASKS),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Do one share of the tasks, such as 2/8.", rich_help_panel=_TASKS),
    ] = None,
    partitions: Annotated[
        int,
        typer.Option(
            metavar="N", help="Parts that are judged; more need less memory.", rich_help_panel=_TASKS
        ),
    ] = 64,
    split: o.Split = None,
    relations: o.Relations = None,
    negatives: o.Negatives = None,
    match: o.Match = None,
    ratio: o.Ratio = None,
    all_within_cluster: o.AllPairs = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a dataset of all public repositories from hours of GH Archive. Run it again to continue.

    GitHub is asked for nothing without --top-up. The dataset is the same whatever --workers, --shard and
    --partitions are.
    Shards share one --work, a folder or a place in S3. Each does the tasks whose files are there: run all
    of them again until none is left, then run the command without --shard.
    """
    made = gis_builder.archive(
        hours,
        source,
        out,
        work=work,
        exclude=exclude,
        min_closed=min_closed,
        per_repo_max=per_repo_max,
        language=language,
        incomplete=incomplete,
        top_up=top_up,
        api=api,
        api_url=api_url,
        token_file=token_file,
        parallel=parallel,
        keep_hours=keep_hours,
        engine=engine,
        address=address,
        workers=workers,
        shard=shard,
        partitions=partitions,
        split=split,
        relations=relations,
        negatives=negatives,
        match=match,
        ratio=ratio,
        all_within_cluster=all_within_cluster,
        seed=seed,
        config=config,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    if isinstance(made, gis_builder.ShardDone):
        say(made.summary(), quiet=quiet)
        if json:
            print_json(made.to_dict())
        return
    show_built(made, as_json=json, quiet=quiet)
    tell_to_train(made, quiet=json or quiet)
