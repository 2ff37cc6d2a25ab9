"""Commands of `gis` that fetch: plan, crawl, import, status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import gis_builder
from gis_builder.commands import options as o
from gis_builder.commands.app import app, examples, show_plan
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout

if TYPE_CHECKING:
    from gis_builder import Crawled


@app.command(
    epilog=examples("gis plan --repos repos.txt", "gis plan --repos repos.txt --strategy sweep --json")
)
def plan(
    repos: o.Repos,
    *,
    strategy: o.Strategy = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Estimate the points, requests and hours of a crawl. This costs one point for 25 repositories."""
    planned = gis_builder.plan(
        repos,
        strategy=strategy,
        api_url=api_url,
        token_file=token_file,
        config=config,
        settings=sets,
        progress=not quiet,
    )
    show_plan(planned, repos, as_json=json, quiet=quiet)


@app.command(
    epilog=examples(
        "gis crawl --repos repos.txt --work gis.work",
        "gis crawl --repos repos.txt --work gis.work --update",
        "gis crawl --repos repos.txt --work gis.work --archive 2025-01-01-0.json.gz",
    )
)
def crawl(
    repos: o.Repos,
    work: o.WorkOnly,
    *,
    update: Annotated[bool, typer.Option("--update", help="Bring a finished crawl up to date.")] = False,
    archive: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An hour of GH Archive with candidates; repeatable."),
    ] = None,
    strategy: o.Strategy = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fetch issues into WORK/store.sqlite, and no more. Run it again to continue."""
    try:
        crawled = gis_builder.crawl(
            repos,
            work,
            update=update,
            archive=archive or (),
            strategy=strategy,
            api_url=api_url,
            token_file=token_file,
            seed=seed,
            config=config,
            settings=sets,
            progress=not quiet,
        )
    except gis_builder.IncompleteCrawlError as error:
        _show_crawled(error.crawled, as_json=json, quiet=quiet)
        raise
    _show_crawled(crawled, as_json=json, quiet=quiet)
    _tell_to_detect(work, quiet=quiet)


@app.command(
    name="import",
    epilog=examples("gis import saved-tracker --work gis.work", "gis import archive.json --work gis.work"),
)
def import_(
    dump: Annotated[Path, typer.Argument(help="A folder with saved trackers, or a JSON file.")],
    work: o.WorkOnly,
    *,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fill WORK/store.sqlite from a saved tracker instead of a server.

    It reads folders with issues.jsonl, comments.jsonl and events.jsonl: REST objects, one per line. An event
    is closed, reopened, marked_as_duplicate (with canonical: owner/name#M) or unmarked_as_duplicate. There
    may also be repo.json (full_name, previous_names, private, archived, has_issues) and missing.jsonl (lines
    of number, status: deleted or transferred, to: owner/name#M).

    If there are no such files, it reads every JSON file and recognises it by what it holds: arrays of REST
    objects from `gh api --paginate` (issues, comments, events, timelines); `gh issue list --state all --json
    number,title,body,state,stateReason,author,createdAt,updatedAt,closedAt,labels,comments,url`; folders of
    github-backup (issues/N.json with comment_data and event_data) and of github-metadata-backup
    (issues/N.json and pulls/N.json with events); archive.json of i-d-template.

    Each file may be gzipped. Files of JSON lines may be larger than memory. A file that is one JSON document
    may have 512 MiB and is read as a whole.
    """
    crawled = gis_builder.import_tracker(dump, work, progress=not quiet)
    _show_crawled(crawled, as_json=json, quiet=quiet)
    _tell_to_detect(work, quiet=quiet)


@app.command(epilog=examples("gis status --work gis.work"))
def status(work: o.WorkOnly, *, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Show how far a crawl is: issues by repository, points used and left, time left."""
    found = gis_builder.status(work)
    if json:
        print_json(found.to_dict())
        return
    stdout.print(found.table())
    for line in found.notes():
        stdout.print(line, markup=False)
    if found.repositories and found.eta_s == 0:
        _tell_to_detect(work, quiet=quiet)


def _show_crawled(crawled: Crawled, *, as_json: bool, quiet: bool) -> None:
    """What became of each repository, and what it cost."""
    for line in crawled.notes():
        say(line, quiet=quiet)
    if as_json:
        print_json(crawled.to_dict())


def _tell_to_detect(work: Path, *, quiet: bool) -> None:
    next_step("find the duplicates", ["gis", "detect", "--work", work], quiet=quiet)
