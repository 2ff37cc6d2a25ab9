"""The `gis` commands, derived from the public functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gis_builder.api import crawls, datasets
from pairkit.base.cli.commands import add_command, application, run_command
from pairkit.base.cli.options import RUN, Option
from pairkit.base.cli.terminal import CommandResult, show
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from gis_builder.crawling.crawl import Plan

app = application(
    "gis", "Make leak-free datasets of text pairs from duplicate GitHub issues (GIS)."
)


@SHARED(
    dry_run=Option("Estimate the cost of the crawl and stop.", panel=RUN, main=True)
)
def _build(arguments: dict[str, Any], *, dry_run: bool = False) -> CommandResult:
    if dry_run:
        return _with_build(datasets.plan_of_build(**arguments))
    return datasets.build(**arguments)


def _plan(arguments: dict[str, Any]) -> Plan:
    return _with_build(datasets.plan(**arguments))


def _with_build(plan: Plan) -> Plan:
    """The plan, with a build with the same options as the next step."""
    return replace(plan, build=run_command("gis", "build"))


@SHARED(
    dry_run=Option(
        "Show how columns, times and links are read, and write nothing.",
        panel=RUN,
        main=True,
    )
)
def _import(arguments: dict[str, Any], *, dry_run: bool = False) -> CommandResult:
    if dry_run:
        return crawls.preview_import(**arguments)
    return crawls.import_tracker(**arguments)


def _crawl(
    arguments: dict[str, Any], *, json: bool = False, quiet: bool = False
) -> CommandResult:
    """An incomplete crawl also prints its result, before the error."""
    from gis_builder.crawling.status import IncompleteCrawlError

    try:
        return crawls.crawl(**arguments)
    except IncompleteCrawlError as error:
        show(error.crawled, json=json, quiet=quiet)
        raise


@SHARED(
    explain=Option(
        "Show the evidence on one issue, owner/name#number, and stop.",
        metavar="ISSUE",
        main=True,
    )
)
def _detect(arguments: dict[str, Any], *, explain: str | None = None) -> CommandResult:
    if explain is None:
        return crawls.detect(**arguments)
    del arguments["progress"]  # one issue takes no time
    return crawls.explain(issue=explain, **arguments)


@SHARED(
    read_only=Option(
        "Only read the hours into `work`; their files can then be deleted."
    )
)
def _archive(arguments: dict[str, Any], *, read_only: bool = False) -> CommandResult:
    if read_only:
        return datasets.read_hours(**arguments)
    return datasets.archive(**arguments)


add_command(
    app,
    datasets.build,
    "gis build --repos rust-lang/rust --out rust",
    "gis build --repos data/repos.txt --out papers --strategy all --negatives mixed --seed 7",
    "gis build --repos data/repos.txt --out papers --split-sizes 18565,1547,1548",
    run=_build,
)
add_command(
    app,
    datasets.plan,
    "gis plan --repos data/repos.txt",
    "gis plan --repos data/repos.txt --strategy all --json",
    run=_plan,
)
add_command(
    app,
    crawls.crawl,
    "gis crawl --repos data/repos.txt --work papers.work",
    "gis crawl --repos data/repos.txt --work papers.work --update",
    run=_crawl,
)
add_command(
    app,
    crawls.import_tracker,
    "gis import data/sample --work gis.work",
    "gis import data/sample_tickets.csv --work tickets.work --dry-run",
    "gis import data/sample_tickets.csv --work tickets.work",
    name="import",
    run=_import,
)
add_command(app, crawls.status, "gis status --work gis.work")
add_command(
    app,
    crawls.detect,
    "gis detect --work gis.work",
    "gis detect --work gis.work --explain orrery3d/orrery#48",
    run=_detect,
)
add_command(
    app,
    datasets.pair,
    "gis pair --work gis.work --out gis",
    "gis pair --work gis.work --out hard --negatives hard",
)
add_command(app, crawls.render, "gis render --work gis.work --out issues.parquet")
add_command(app, datasets.demo, "gis demo --out demo")
add_command(
    app,
    crawls.suggest,
    "gis suggest --repo quarryhq/quarry --issue 603 --index issues --work gis.work",
)
add_command(
    app,
    datasets.archive,
    "gis archive --hours 2015-01-01..2015-12-31 --source gharchive --out gis-2015",
    "gis archive --hours 2015-01-01..2024-12-31 --source gharchive --out all --set limits.per_repo_max=500",
    "gis archive --hours 2015-01-01..2024-12-31 -s gharchive -o all --engine ray --address 10.0.0.1:6379",
    run=_archive,
)
