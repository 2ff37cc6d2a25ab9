"""The public functions of `gis_builder`, from which the commands are derived.

Each function imports its stages when it is called, so that the command line starts fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Option, same_arguments, setting_keys
from pairkit.base.errors import ConfigError
from pairkit.dataset.shared_options import SHARED, columns_given, mapping

if TYPE_CHECKING:
    from gis_builder.crawl_progress import RunDisplay
    from gis_builder.crawling.crawl_plan import Plan
    from gis_builder.crawling.github import GitHub
    from gis_builder.crawling.status import Crawled, Status
    from gis_builder.detection.detection_results import Detected, Explanation
    from gis_builder.pairing.pairing_results import ArchiveBuilt, Built, HoursRead, Rendered
    from gis_builder.pairing.suggest import Suggested
    from gis_builder.settings import BuildSettings
    from gis_builder.settings.negative_strategies import Rank
    from gis_builder.store import Store
    from gis_builder.trackers.preview import ImportPreview
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.base.cli.progress import Listener

Repos: TypeAlias = str | Path | Iterable[str]
_Progress: TypeAlias = "bool | Listener"

_SERVER, _PAIRS, _TASKS = "Server", "Pairs", "Tasks"

options = SHARED.extended(
    repos=Option(
        "Repositories as owner/name,owner/name, or a file with one per line. In Python also a list.",
        short="-r",
        metavar="FILE|NAMES",
    ),
    work=Option("Folder of the crawl.", short="-w", metavar="DIR"),
    strategy=Option(setting="crawl.strategy", metavar="NAME", main=True),
    api_url=Option(setting="crawl.api_url", metavar="URL", panel=_SERVER),
    token=Option(
        "A GitHub token, or several separated by commas. Default: from GITHUB_TOKEN, a GitHub App's variables"
        " or `gh auth login`.",
        hidden=True,
    ),
    token_file=Option(
        "A file with one token per line, instead of GITHUB_TOKEN.", metavar="FILE", panel=_SERVER
    ),
    split_sizes=Option(setting="split.sizes", metavar="A,B,C", panel=_PAIRS, main=True),
    relations=Option(setting="pair.relations", metavar="NAMES", panel=_PAIRS),
    negatives=Option(setting="pair.negatives", metavar="NAME", panel=_PAIRS, main=True),
    match=Option(setting="pair.match", metavar="NAME", panel=_PAIRS),
    ratio=Option(setting="pair.ratio", panel=_PAIRS),
    all_within_cluster=Option(setting="pair.all_within_cluster", panel=_PAIRS),
    cluster_cap=Option(setting="pair.cluster_cap", panel=_PAIRS),
    seed=Option(setting="seed", panel=RUN),
)


@options("gis_builder.settings:BuildSettings")
def build(
    repos: Repos,
    out: str | Path = "gis-dataset",
    *,
    work: str | Path | None = None,
    strategy: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    split_sizes: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    cluster_cap: int | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> Built:
    """Crawl repositories, detect duplicates, make pairs, split them, write the dataset and audit it.

    If a build was stopped, the same call continues it.

    Args:
        work: The folder of the crawl and its verdicts. Default: OUT.work.

    Raises:
        ConfigError: A setting, a folder or a token is invalid, or no repository can be crawled.
        DataError: There are no duplicates, or the store is damaged.
        LeakError: The audit found a leak; the dataset is kept for inspection.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: All repositories failed; call it again to continue.
    """
    from gis_builder.pairing.build_pairs import build as build_dataset
    from gis_builder.store.repos import read_repos
    from pairkit.base.system.folders import work_beside

    given: dict[str, Any] = {
        "strategy": strategy,
        "api_url": api_url,
        "split_sizes": split_sizes,
        "relations": relations,
    }
    given |= {"negatives": negatives, "match": match, "ratio": ratio, "cluster_cap": cluster_cap}
    given |= {"all_within_cluster": all_within_cluster, "seed": seed}
    merged = _merged(build, given, config, settings)
    names, folder = read_repos(repos), _path("out", out)
    work_folder = work_beside(folder) if work is None else _path("work", work)
    with _display(progress) as show:
        open_github = _opener(merged, token, token_file, show)
        return build_dataset(names, folder, work_folder, merged, open_github, show, fresh=fresh)


@same_arguments(build)
def plan(arguments: dict[str, Any]) -> Plan:
    """Estimate the cost of a crawl: points of GitHub's rate limit, requests and hours.

    Nothing is written. The estimate itself costs one point per 25 repositories.
    """
    from gis_builder.crawling.crawl_plan import plan as plan_crawl
    from gis_builder.store.repos import read_repos

    merged = _merged(build, arguments, arguments["config"], arguments["settings"])
    names = read_repos(arguments["repos"])
    with _display(arguments["progress"]) as show:
        open_github = _opener(merged, arguments["token"], arguments["token_file"], show)
        return plan_crawl(names, merged, open_github)


@options("gis_builder.settings:BuildSettings", update=Option(main=True))
def crawl(
    repos: Repos,
    work: str | Path,
    *,
    update: bool = False,
    strategy: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    progress: _Progress = True,
) -> Crawled:
    """Fetch issues from GitHub into the folder `work`. If a crawl was stopped, the same call continues it.

    Args:
        work: The crawl's folder, which is created if necessary.
        update: Bring a finished crawl up to date.

    Raises:
        ConfigError: A setting, the folder or a token is invalid, the folder contains a crawl with other
            settings, or no repository can be crawled.
        DataError: The store is damaged.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: All repositories failed; call it again to continue.
    """
    from gis_builder.crawling import crawl as _crawl
    from gis_builder.crawling.status import Crawled, IncompleteCrawlError, read_status
    from gis_builder.store import RepoOutcome
    from gis_builder.store.repos import read_repos
    from gis_builder.store.store import held_store

    given: dict[str, Any] = {"strategy": strategy, "api_url": api_url, "seed": seed}
    merged = _merged(crawl, given, config, settings)
    names, folder = read_repos(repos), _path("work", work)
    with _display(progress) as show:
        open_github = _opener(merged, token, token_file, show)
        with held_store(folder) as store:
            with open_github(store) as github:
                fetch = _crawl.update if update else _crawl.crawl
                rows = fetch(github, store, names, merged, show)
            crawled = Crawled(folder, rows, read_status(store))
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise IncompleteCrawlError(crawled)
    return crawled


@options(
    folder=Option(metavar="DUMP", positional=True),
    links=Option(metavar="FILE", main=True),
    link_columns=Option(metavar="A=B,…", panel=INPUT, read=partial(mapping, "--link-columns")),
    columns=Option(metavar="A=B,…", panel=INPUT, read=columns_given),
    date_format=Option(metavar="FORMAT", panel=INPUT),
    repo=Option(metavar="OWNER/NAME", main=True),
    skip_broken=Option(main=True),
)
def import_tracker(
    folder: str | Path,
    work: str | Path,
    *,
    links: str | Path | None = None,
    link_columns: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    date_format: str = "",
    repo: str | None = None,
    skip_broken: bool = False,
    progress: _Progress = True,
) -> Crawled:
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
    from gis_builder.crawling import crawl as _crawl
    from gis_builder.crawling.status import Crawled, read_status
    from gis_builder.store.store import held_store

    work_folder, saved = _path("work", work), _path("folder", folder)
    how_to_read = _import_options(
        links=links,
        link_columns=link_columns,
        columns=columns,
        date_format=date_format,
        repo=repo,
        skip_broken=skip_broken,
    )
    with _display(progress) as show, held_store(work_folder) as store:
        rows = _crawl.import_tracker(store, saved, show.say, how_to_read)
        return Crawled(work_folder, rows, read_status(store))


@same_arguments(import_tracker)
def preview_import(arguments: dict[str, Any]) -> ImportPreview:
    """Show how an import reads its files: columns, times, links and the first three tickets.

    Nothing is written.
    """
    from gis_builder.trackers.preview import preview

    return preview(_path("folder", arguments["folder"]), _import_options(**arguments))


@options()
def status(work: str | Path) -> Status:
    """Show the progress of a crawl, even while it runs: issues, points used and left, time left.

    Raises:
        ConfigError: There is no crawl in that folder.
        DataError: Its store is damaged.
    """
    from gis_builder.crawling.status import read_status
    from gis_builder.store.store import open_store

    with open_store(_path("work", work)) as store:
        return read_status(store)


@options("gis_builder.settings:BuildSettings")
def detect(
    work: str | Path,
    *,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    progress: _Progress = True,
) -> Detected:
    """Decide for every fetched thread whether it was closed as a duplicate.

    Writes WORK/verdicts.parquet. A verdict is reused if its thread, and the issues that it depends on, are
    unchanged.

    Raises:
        ConfigError: A setting is invalid, or there is no crawl in that folder.
        DataError: Its store is damaged or has no issues.
    """
    from gis_builder.detection.detection_results import Detected
    from gis_builder.detection.detector import FILE, count_verdicts
    from gis_builder.detection.detector import detect as detect_duplicates
    from gis_builder.store.store import held_store

    merged, verdicts = _merged(detect, {}, config, settings), _path("work", work) / FILE
    with _display(progress) as show, held_store(verdicts.parent, create=False) as store:
        store.check_issues()
        judged_anew = detect_duplicates(store, verdicts, store.repos(), merged.detect, show)
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
    from gis_builder.detection.detection_results import Explanation
    from gis_builder.detection.detector import explain_thread
    from gis_builder.pairing.pair_folder import dropped_lines
    from gis_builder.pairing.pairing_results import DROPPED_FILE
    from gis_builder.store.store import open_store
    from pairkit.base.settings import argument

    merged, name, folder = (
        _merged(explain, {}, config, settings),
        argument("issue", issue, str),
        _path("work", work),
    )
    if (folder / "hours").is_dir():
        from gis_builder.gh_archive.judge_threads import explain_archived

        verdict, text = explain_archived(folder, name, merged.detect)
    else:
        with open_store(folder) as store:
            verdict, text = explain_thread(store, name, merged.detect)
    text = "\n".join([text, *dropped_lines(folder / DROPPED_FILE, verdict.ref)])
    targets = tuple(map(str, verdict.targets))
    return Explanation(
        *(str(verdict.ref), str(verdict.outcome), targets, verdict.confidence, verdict.reason, text)
    )


@options("gis_builder.settings:BuildSettings")
def pair(
    work: str | Path,
    out: str | Path = "gis-dataset",
    *,
    split_sizes: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    cluster_cap: int | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> Built:
    """Make a dataset from a crawl and its verdicts, without any request to the server.

    Raises:
        ConfigError: A setting or a folder is invalid.
        LeakError: The audit found a leak; the dataset is kept for inspection.
        DataError: There are no verdicts, or they are older than the crawl; there are no duplicates.

    Example:
        >>> import gis_builder
        >>> def by_length(texts):
        ...     indices = range(len(texts))
        ...     return [sorted(indices, key=lambda i: abs(len(texts[i]) - len(text))) for text in texts]
        >>> crawled = gis_builder.import_tracker("tracker", "gis.work", progress=False)
        >>> detected = gis_builder.detect("gis.work", progress=False)
        >>> built = gis_builder.pair("gis.work", "gis", negatives=by_length, progress=False)
        >>> "__main__.by_length" in built.statistics["negative_kinds"]
        True
    """
    from gis_builder.pairing.build_pairs import pair as pair_dataset

    given: dict[str, Any] = {
        "split_sizes": split_sizes,
        "relations": relations,
        "negatives": negatives,
        "match": match,
    }
    given |= {"ratio": ratio, "cluster_cap": cluster_cap, "seed": seed}
    given |= {"all_within_cluster": all_within_cluster}
    merged = _merged(pair, given, config, settings)
    with _display(progress) as show:
        return pair_dataset(_path("out", out), _path("work", work), merged, show, fresh=fresh)


@options(
    "gis_builder.settings:ArchiveSettings",
    hours=Option(metavar="A..B"),
    source=Option(short="-s", metavar="DIR"),
    exclude=Option(metavar="FILE"),
    workers=Option(metavar="N", panel=_TASKS),
    engine=Option(metavar="NAME", panel=_TASKS),
    address=Option(metavar="HOST:PORT", panel=_TASKS),
)
def archive(
    hours: str,
    source: str | Path,
    out: str | Path = "gis-archive",
    *,
    work: str | Path | None = None,
    exclude: str | Path | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    read_only: bool = False,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> ArchiveBuilt | HoursRead:
    """Make a dataset from issues of all public repositories, as recorded by GH Archive.

    No request is sent to GitHub. If a run was stopped, the same call continues it. Runs with the same `work`
    reuse each other's results, even if hours or settings differ. Workers and engine don't change the dataset.

    Args:
        hours: The first and the last day or hour in UTC, such as `2015-01-01..2015-12-31` or
            `2015-01-01-0..2015-01-01-5`.
        source: Folder of GH Archive's files, such as 2015-01-01-0.json.gz; it may lack hours that were
            already read into `work`.
        work: The folder for intermediate results. Default: OUT.work.
        exclude: A file of what to leave out, one per line: owner/name, owner/*, owner/name#12 or @login.
        workers: Number of processes. Default: the number of cores.
        engine: Where processes run: local, or ray for a cluster whose machines share `source`, `out` and
            `work`.
        address: The address of the Ray cluster, as printed by ray start.
        read_only: Only read the hours into `work`; their files can then be deleted.

    Raises:
        ConfigError: A setting or a folder is invalid.
        DataError: All hours are missing, or they contain no pair.
        LeakError: The audit found a leak; the dataset is kept for inspection.
    """
    from typing import Literal

    from pydantic import Field

    from gis_builder.gh_archive.archive_run import Job, build_archive, read_hours
    from gis_builder.gh_archive.hours import hours_between
    from gis_builder.gh_archive.judge_threads import read_exclusions
    from gis_builder.gh_archive.runners import choose_runner
    from gis_builder.settings import ArchiveSettings
    from pairkit.base.settings import argument, merge
    from pairkit.base.system.folders import work_beside

    given: dict[str, Any] = {"seed": seed}
    merged = merge(ArchiveSettings, setting_keys(archive), given, config=config, settings=settings)
    folder = _path("out", out)
    runner = choose_runner(
        argument("engine", engine, Literal["local", "ray"]),
        argument("workers", workers, Annotated[int, Field(ge=1)] | None),
        argument("address", address, str | None),
    )
    with _display(progress) as show:
        job = Job(
            hours_between(argument("hours", hours, str)),
            _path("source", source),
            work_beside(folder) if work is None else _path("work", work),
            merged,
            () if exclude is None else read_exclusions(_path("exclude", exclude)),
        )
        with runner:
            if read_only:
                return read_hours(job, runner, show)
            return build_archive(job, folder, runner, show, fresh=fresh)


@options(out=Option(short="-o", metavar="FILE", panel=OUTPUT, main=True))
def render(
    work: str | Path,
    out: str | Path = "issues.parquet",
    *,
    fresh: bool = False,
    progress: _Progress = True,
) -> Rendered:
    """Write the text of every issue, for `aoe index` and `aoe evaluate --suite tracker`.

    Args:
        work: The folder of the crawl or import. A search has only some of the issues.
        out: The Parquet file, with the columns id (`owner/name#number`), repo, number, url, text, created_at,
            state and labels; of tickets also key (`ABC-12`) and priority.

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

    file = _path("out", out)
    with _display(progress) as show, open_store(_path("work", work)) as store:
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

    The issue's text, as rendered by `render`, is compared with the issues of its repository that were opened
    before it. Nothing is sent to GitHub.

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
    from gis_builder.store.repos import read_repos
    from gis_builder.store.store import open_store
    from pairkit.base.settings import argument

    (name,) = read_repos([repo])
    if not 1 <= argument("top", top, int) <= 50:
        raise ConfigError(f"top {top}: expected 1 to 50")
    key, folder = str(argument("issue", issue, int | str)), _path("index", index)
    with open_store(_path("work", work)) as store:
        ticket = store.tickets().get(store.full_name(name), {}).get(key)
        if ticket is None and not re.fullmatch(r"[0-9]{1,9}", key):
            raise ConfigError(f"issue = {key!r}: expected a number or the key of a ticket of {name}")
        ref = IssueRef(name, ticket.number if ticket else int(key))
        return suggest_for(store, ref, folder, top)


_PACKAGE = Path(__file__).resolve().parent
_SAMPLES = (_PACKAGE / "data" / "sample", _PACKAGE.parent / "data" / "sample")  # installed, source tree


@options()
def demo(out: str | Path = "demo", *, fresh: bool = False, progress: _Progress = True) -> Built:
    """Build a dataset from the sample trackers: no token, no network."""
    from pairkit.base.system.folders import work_beside

    work = work_beside(_path("out", out))
    sample = next((folder for folder in _SAMPLES if folder.is_dir()), None)
    if sample is None:
        raise ConfigError("the sample trackers are missing from this installation; reinstall aoe-toolkit")
    import_tracker(sample, work, progress=progress)
    detect(work, progress=progress)
    return pair(work, out, fresh=fresh, progress=progress)


def _import_options(
    *,
    links: Any,
    link_columns: Any,
    columns: Any,
    date_format: Any,
    repo: Any,
    skip_broken: Any,
    **_: object,
) -> ImportOptions:
    """The arguments of `import_tracker` that say how to read the files."""
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.base.settings import argument

    return ImportOptions(
        None if links is None else _path("links", links),
        argument("columns", columns, dict[str, str] | None) or {},
        argument("repo", repo, str | None),
        argument("skip_broken", skip_broken, bool),
        argument("link_columns", link_columns, dict[str, str] | None) or {},
        argument("date_format", date_format, str),
    )


def _merged(
    function: Callable[..., Any], given: Mapping[str, Any], config: Any, settings: Any
) -> BuildSettings:
    """Merge a function's arguments with `config` and `settings`."""
    from gis_builder.settings import BuildSettings
    from pairkit.base.settings import merge

    return merge(BuildSettings, setting_keys(function), given, config=config, settings=settings)


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")


def _path(name: str, value: str | Path) -> Path:
    from pairkit.base.settings import argument

    path: Path = argument(name, value, Path)
    if _SCHEME.match(str(path)):  # otherwise a folder called s3: would be created
        raise ConfigError(f"{name} = {path}: expected a path, not a URL")
    return path


def _display(progress: _Progress) -> RunDisplay:
    from gis_builder.crawl_progress import RunDisplay

    return RunDisplay(progress)


def _opener(
    settings: BuildSettings, token: str | None, token_file: str | Path | None, show: RunDisplay
) -> Callable[[Store], GitHub]:
    """Return a factory of the crawl's client; tokens are found now, so that a missing token fails early."""
    import os

    from gis_builder.crawling.github import GitHub, find_tokens
    from pairkit.base.settings import argument

    token = argument("token", token, str | None)
    tokens = find_tokens(
        settings.crawl.api_url,
        file=None if token_file is None or token else _path("token_file", token_file),
        environ=os.environ if token is None else {"GITHUB_TOKEN": token},
        plain_http=settings.crawl.plain_http,
    )
    return lambda store: GitHub(settings.crawl, tokens, store, show.crawling)
