"""From trackers to verdicts, and what a crawl is used for without a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gis_builder.api.common_options import (
    GitHubRequest,
    build_settings,
    display,
    opener,
    options,
    path_of,
    read_repos,
    without_address,
)
from pairkit.base.cli.options import INPUT, OUTPUT, Option, Request, parameter, takes
from pairkit.base.errors import ConfigError
from pairkit.dataset.shared_options import columns_given, mapping

if TYPE_CHECKING:
    from gis_builder.crawling.import_preview import ImportPreview
    from gis_builder.crawling.status import Crawled, Status
    from gis_builder.detection.explain import Explanation
    from gis_builder.detection.verdict_files import Detected
    from gis_builder.pairing.pairing_results import Rendered
    from gis_builder.pairing.suggest import Suggested
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.base.cli.progress import Listener


class CrawlRequest(
    GitHubRequest, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments of `crawl`."""

    repos: str | Path | Iterable[str]
    work: str | Path
    _: KW_ONLY
    update: bool = parameter(default=False, main=True)
    seed: int | None = None
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    progress: bool | Listener = True


@takes(CrawlRequest)
def crawl(request: CrawlRequest) -> Crawled:
    """Fetch issues from GitHub into the folder `work`. If a crawl was stopped, the same call continues it.

    Args:
        work: The crawl's folder, which is created if necessary.
        update: Bring a finished crawl up to date.

    Raises:
        ConfigError: A setting, the folder or a token is invalid, the folder contains a crawl with other
            settings, or no repository can be crawled.
        DataError: The store is damaged.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: The server can't be reached, or all repositories failed; call it again to continue.
    """
    from gis_builder.crawling.crawl import crawl as crawl_repos
    from gis_builder.crawling.status import Crawled, IncompleteCrawlError, read_status
    from gis_builder.store import RepoOutcome
    from gis_builder.store.store import locked_store

    settings = build_settings(request)
    names = read_repos(request.repos)
    folder = path_of("work", request.work)
    with display(request.progress) as show:
        open_github = opener(request, settings, show)
        with locked_store(folder) as store:
            with open_github(store) as github:
                rows = crawl_repos(
                    github, store, names, settings, show, update=request.update
                )
            crawled = Crawled(folder, rows, read_status(store))
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise IncompleteCrawlError(crawled)
    return crawled


class ImportRequest(Request, shared=options):
    """The arguments of `import_tracker` and `preview_import`."""

    folder: str | Path = parameter(metavar="DUMP", positional=True)
    work: str | Path
    _: KW_ONLY
    links: str | Path | None = parameter(default=None, metavar="FILE", main=True)
    link_columns: Mapping[str, str] | None = parameter(
        default=None,
        metavar="A=B,…",
        panel=INPUT,
        read=partial(mapping, "--link-columns"),
    )
    columns: Mapping[str, str] | None = parameter(
        default=None, metavar="A=B,…", panel=INPUT, read=columns_given
    )
    date_format: str = parameter(default="", metavar="FORMAT", panel=INPUT)
    repo: str | None = parameter(default=None, metavar="OWNER/NAME", main=True)
    skip_broken: bool = parameter(default=False, main=True)
    progress: bool | Listener = True


@takes(ImportRequest)
def import_tracker(request: ImportRequest) -> Crawled:
    """Read a saved tracker of GitHub, or tickets of another tracker, instead of crawling.

    GitHub: folders of REST objects (issues.jsonl, comments.jsonl, events.jsonl), and the output of `gh api
    --paginate`, `gh issue list --json` and github-backup. Other trackers: CSV, TSV, JSON, Parquet and
    spreadsheets, also as exported by Jira, GitLab, Bugzilla, YouTrack, Redmine, Azure DevOps and others, with
    their links to duplicates. The page "Saved trackers, tickets and stores" lists files, columns and limits.

    A ticket with a link counts as closed as a duplicate. Links that are not found are listed in
    WORK/skipped_links.csv. Each file may be gzipped.

    Args:
        folder: A folder of saved trackers, a JSON file, or a table of tickets.
        work: The crawl's folder, which is created if necessary.
        links: A table of duplicate links with the columns id and duplicate_of.
        link_columns: Names of the columns of `links`, such as id=Nr,duplicate_of=Original.
        columns: Names of the columns of tickets, such as title=Betreff,id=Nr.
        date_format: Format of times, such as %d/%m/%Y %H:%M. Default: recognised from the times.
        repo: Repository of all tickets, and of GitHub's objects that name none, as owner/name. Default for
            tickets: host or `tickets`, and the project or the name of the file or folder.
        skip_broken: Skip and count damaged rows and files instead of stopping at the first one.

    Raises:
        ConfigError: `work` can't be written or has a crawl from a server; an argument is invalid.
        DataError: There is no saved tracker, or one of its lines is invalid.
    """
    from gis_builder.crawling.crawl import import_tracker as import_saved
    from gis_builder.crawling.status import Crawled, read_status
    from gis_builder.store.store import locked_store

    work = path_of("work", request.work)
    saved = path_of("folder", request.folder)
    import_options = _import_options(request)
    with display(request.progress) as show, locked_store(work) as store:
        rows = import_saved(store, saved, show.say, import_options)
        return Crawled(work, rows, read_status(store), is_import=True)


@takes(ImportRequest, same_texts=import_tracker)
def preview_import(request: ImportRequest) -> ImportPreview:
    """Show how an import reads its files: columns, times, links and the first three tickets.

    Nothing is written.
    """
    from gis_builder.crawling.import_preview import preview

    return preview(path_of("folder", request.folder), _import_options(request))


def _import_options(request: ImportRequest) -> ImportOptions:
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.base.settings import argument

    names = dict[str, str] | None
    return ImportOptions(
        links=None if request.links is None else path_of("links", request.links),
        columns=argument("columns", request.columns, names) or {},
        repo=argument("repo", request.repo, str | None),
        skip_broken=argument("skip_broken", request.skip_broken, bool),
        link_columns=argument("link_columns", request.link_columns, names) or {},
        date_format=argument("date_format", request.date_format, str),
    )


@options()
def status(work: str | Path) -> Status:
    """Show the progress of a crawl, even while it runs: issues, points used and left, time left.

    Raises:
        ConfigError: There is no crawl in that folder.
        DataError: Its store is damaged.
    """
    from gis_builder.crawling.status import read_status
    from gis_builder.store.store import open_store

    with open_store(path_of("work", work)) as store:
        return read_status(store)


@options("gis_builder.settings:BuildSettings")
def detect(
    work: str | Path,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    progress: bool | Listener = True,
) -> Detected:
    """Decide for every fetched thread whether it was closed as a duplicate.

    Writes WORK/verdicts.parquet. A verdict is reused if its thread, and the issues that it depends on, are
    unchanged.

    Raises:
        ConfigError: A setting is invalid, or there is no crawl in that folder.
        DataError: Its store is damaged or has no issues.
    """
    from gis_builder.detection.detector import detect as detect_duplicates
    from gis_builder.detection.verdict_files import FILE, Detected, count_verdicts
    from gis_builder.settings import BuildSettings
    from gis_builder.store.store import locked_store
    from pairkit.base.settings import load_settings

    detection = load_settings(BuildSettings, config=config, settings=settings).detect
    folder = path_of("work", work)
    verdicts = folder / FILE
    with display(progress) as show, locked_store(folder, create=False) as store:
        store.check_issues()
        judged_anew = detect_duplicates(store, verdicts, store.repos(), detection, show)
    return Detected(verdicts, count_verdicts(verdicts), judged_anew)


@options("gis_builder.settings:BuildSettings")
def explain(
    work: str | Path,
    issue: str,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
) -> Explanation:
    """Explain the verdict on an issue: the evidence in order of time, with its weight.

    If a dataset was made, also why the issue or its pairs were left out of it.

    Args:
        work: The folder of a crawl or an archive.
        issue: The issue, as `owner/name#number`.

    Raises:
        ConfigError: There is no crawl or archive in that folder, or it has no such issue.
        DataError: Its store is damaged.
    """
    from gis_builder.detection.detector import explain_thread
    from gis_builder.pairing.pair_folder import dropped_lines
    from gis_builder.pairing.pairing_results import DROPPED_FILE
    from gis_builder.settings import BuildSettings
    from gis_builder.store.store import open_store
    from pairkit.base.settings import argument, load_settings

    detection = load_settings(BuildSettings, config=config, settings=settings).detect
    name = argument("issue", issue, str)
    folder = path_of("work", work)
    if (folder / "hours").is_dir():
        from gis_builder.gh_archive.judge_threads import explain_archived

        explanation = explain_archived(folder, name, detection)
    else:
        with open_store(folder) as store:
            explanation = explain_thread(store, name, detection)
    dropped = dropped_lines(folder / DROPPED_FILE, explanation.issue)
    return replace(explanation, text="\n".join([explanation.text, *dropped]))


@options(out=Option(short="-o", metavar="FILE", panel=OUTPUT, main=True))
def render(
    work: str | Path,
    out: str | Path = "issues.parquet",
    *,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Rendered:
    """Write the text of every issue, for `aoe index` and `aoe evaluate --suite tracker`.

    Args:
        work: The folder of the crawl or import. A search has only some of the issues.
        out: The file (.parquet, .csv, .tsv or .jsonl), with the columns id (`owner/name#number`), repo,
            number, url, text, created_at, state and labels; of tickets also key (`ABC-12`) and priority.

    Raises:
        ConfigError: There is no crawl in that folder, or `out` has other content or can't be written.
        DataError: The store is damaged, or has no issue with a text.

    Example:
        >>> import gis_builder
        >>> crawled = gis_builder.import_tracker("tracker", "gis.work", progress=False)
        >>> gis_builder.render("gis.work", "issues.parquet", progress=False).counts["written"] > 50
        True
    """
    from gis_builder.pairing.build_pairs import render_store
    from gis_builder.pairing.pairing_results import Rendered
    from gis_builder.store.store import open_store
    from pairkit.base.settings import argument
    from pairkit.dataset.table_files import TableFile

    file = argument("out", path_of("out", out), TableFile)
    with display(progress) as show, open_store(path_of("work", work)) as store:
        return Rendered(file, render_store(store, file, show, fresh=fresh))


@options(
    repo=Option(metavar="OWNER/NAME"),
    issue=Option(metavar="N|KEY"),
    index=Option(metavar="INDEX"),
    work=replace(options["work"], main=True),
    top=Option(metavar="N", main=True),
)
def suggest(
    repo: str,
    issue: int | str,
    *,
    index: str | Path,
    work: str | Path = "gis.work",
    top: int = 5,
) -> Suggested:
    """List older issues that an issue may duplicate.

    The issue's text, as rendered by `render`, is compared with the issues of its repository, or with the
    tickets of all imported projects, that were opened before it. Nothing is sent to GitHub.

    Args:
        repo: Repository of the issue, as owner/name.
        issue: The number of an issue, or the key of a ticket, such as ABC-12.
        index: The index that `aoe index` built from the table of `gis render`.
        top: Number of suggestions, at most 50.

    Raises:
        ConfigError: There is no crawl or no index.
        DataError: The issue is not in the crawl, or the index is damaged.
    """
    from gis_builder.pairing.suggest import suggest_for
    from gis_builder.store.issue_records import IssueRef
    from gis_builder.store.store import open_store
    from pairkit.base.settings import argument

    name = without_address(argument("repo", repo, str))
    count = argument("top", top, int)
    if not 1 <= count <= 50:
        raise ConfigError(f"top {top}: expected 1 to 50")
    key = str(argument("issue", issue, int | str))
    folder = path_of("index", index)
    with open_store(path_of("work", work)) as store:
        ticket = store.tickets().get(store.full_name(name), {}).get(key)
        if ticket is None and not re.fullmatch(r"[0-9]{1,9}", key):
            raise ConfigError(
                f"issue = {key!r}: expected a number or the key of a ticket of {name}"
            )
        ref = IssueRef(name, ticket.number if ticket else int(key))
        return suggest_for(store, ref, folder, count)
