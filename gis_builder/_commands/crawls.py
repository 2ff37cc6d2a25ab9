"""Commands of `gis` that fetch: plan, crawl, import, status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples
from gis_builder._commands.results import show_crawled, show_plan
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say


@app.command(
    epilog=examples("gis plan --repos repos.txt", "gis plan --repos repos.txt --strategy sweep --json")
)
def plan(
    repos: o.Repos,
    *,
    strategy: o.Strategy = None,
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Price a crawl by repository: points, requests, hours a token. Costs a point for 25 repositories."""
    from gis_builder._repos import read_repos

    settings = o.merged_settings(config, sets, None, strategy, api, api_url)
    show_plan(read_repos(repos), settings, token_file, json=json, quiet=quiet)


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
        typer.Option("--archive", help="Hours of GH Archive that propose candidates; repeatable."),
    ] = None,
    strategy: o.Strategy = None,
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Only fetch, into WORK/store.sqlite. Run it again to go on."""
    from gis_builder import _crawl as use_case
    from gis_builder._folders import STORE_FILE, working_folder
    from gis_builder._repos import read_repos
    from gis_builder._session import Crawler
    from gis_builder._store import Store

    settings = o.merged_settings(config, sets, seed, strategy, api, api_url)
    names = read_repos(repos)
    with (
        Crawler(settings, token_file, quiet=quiet) as crawler,
        working_folder(work),
        Store.open(work / STORE_FILE, create=True) as store,
    ):
        with crawler.open(store) as github:
            if archive:
                rows = use_case.crawl_archive(github, store, names, archive, settings, crawler.say)
            else:
                fetch = use_case.update if update else use_case.crawl
                rows = fetch(github, store, names, settings)
        show_crawled(store, rows, as_json=json, quiet=quiet)
    if failed := use_case.failures(rows):
        raise failed


@app.command(
    name="import",
    epilog=examples("gis import saved-tracker --work gis.work", "gis import archive.json --work gis.work"),
)
def import_(
    dump: Annotated[Path, typer.Argument(help="A folder with saved trackers, or one file of JSON.")],
    work: o.WorkOnly,
    *,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fill WORK/store.sqlite from a saved tracker instead of a server.

    Read are folders with issues.jsonl, comments.jsonl and events.jsonl: REST objects, one a line. An event is
    closed, reopened, marked_as_duplicate (with canonical: owner/name#M) or unmarked_as_duplicate. Beside them
    may lie repo.json (full_name, previous_names, private, archived, has_issues) and missing.jsonl (lines of
    number, status: deleted or transferred, to: owner/name#M).

    Where there are none, all files of JSON are read, each recognised by what it holds: arrays of REST objects
    as of `gh api --paginate` (issues, comments, events, timelines); `gh issue list --state all --json
    number,title,body,state,stateReason,author,createdAt,updatedAt,closedAt,labels,comments,url`; folders of
    github-backup (issues/N.json with comment_data and event_data) and of github-metadata-backup
    (issues/N.json and pulls/N.json with events); archive.json of i-d-template.

    Each may be gzipped. Files of lines may be larger than memory; a file of JSON may hold 512 MiB and is held
    as a whole, one at a time.
    """
    from gis_builder._crawl import import_tracker
    from gis_builder._folders import STORE_FILE, working_folder
    from gis_builder._store import Store

    with working_folder(work), Store.open(work / STORE_FILE, create=True) as store:
        rows = import_tracker(store, dump, lambda words: say(words, quiet=quiet))
        show_crawled(store, rows, as_json=json, quiet=quiet)


@app.command(epilog=examples("gis status --work gis.work"))
def status(work: o.WorkOnly, *, json: o.Json = False) -> None:
    """Show how far a crawl is: issues by repository, points used and left, time to go."""
    from gis_builder._folders import STORE_FILE
    from gis_builder._status import read_status, status_table
    from gis_builder._store import Store

    with Store.open(work / STORE_FILE) as store:
        found = read_status(store)
    if json:
        print_json(found.to_dict())
    else:
        stdout.print(status_table(found))
