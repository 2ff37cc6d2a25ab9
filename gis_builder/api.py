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

from pairkit.app.errors import ConfigError
from pairkit.app.flag import INPUT, PYTHON_ONLY, RUN, Flag, mapping, same_arguments, setting_keys
from pairkit.dataset.flags import Columns, Config, Fresh, Out, SettingsGiven

if TYPE_CHECKING:
    from gis_builder.crawling.github import GitHub
    from gis_builder.crawling.plan import Plan
    from gis_builder.crawling.status import Crawled, Status
    from gis_builder.detection.results import Detected, Explanation
    from gis_builder.pairing.results import ArchiveBuilt, Built, HoursRead, Rendered
    from gis_builder.pairing.suggest import Suggested
    from gis_builder.progress import RunDisplay
    from gis_builder.settings import BuildSettings
    from gis_builder.settings.strategies import Rank
    from gis_builder.store import Store
    from gis_builder.trackers.preview import ImportPreview
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.app.progress import Listener

Repos: TypeAlias = str | Path | Iterable[str]
_Progress: TypeAlias = "bool | Listener"

_SERVER, _PAIRS, _TASKS = "Server", "Pairs", "Tasks"

ReposGiven = Annotated[Repos, Flag("-r", metavar="FILE|NAMES")]
Work = Annotated[str | Path, Flag("-w", metavar="DIR")]
Strategy = Annotated[str | None, Flag(metavar="NAME", main=True, setting="crawl.strategy")]
ApiUrl = Annotated[str | None, Flag(metavar="URL", panel=_SERVER, setting="crawl.api_url")]
TokenFile = Annotated[str | Path | None, Flag(metavar="FILE", panel=_SERVER)]
SplitSizes = Annotated[
    str | Sequence[float] | None, Flag(metavar="A,B,C", panel=_PAIRS, main=True, setting="split.sizes")
]
Relations = Annotated[
    str | Sequence[str] | None, Flag(metavar="NAMES", panel=_PAIRS, setting="pair.relations")
]
Negatives = Annotated[
    "str | Rank | None", Flag(metavar="NAME", panel=_PAIRS, main=True, setting="pair.negatives")
]
Match = Annotated[str | None, Flag(metavar="NAME", panel=_PAIRS, setting="pair.match")]
Ratio = Annotated[float | None, Flag(metavar="X", panel=_PAIRS, setting="pair.ratio")]
AllPairs = Annotated[bool | None, Flag(panel=_PAIRS, setting="pair.all_within_cluster")]
ClusterCap = Annotated[int | None, Flag(metavar="N", panel=_PAIRS, setting="pair.cluster_cap")]
Seed = Annotated[int | None, Flag(metavar="N", panel=RUN, setting="seed")]


def build(
    repos: ReposGiven,
    out: Annotated[str | Path, Out] = "gis-dataset",
    *,
    work: Annotated[str | Path | None, Flag("-w", metavar="DIR")] = None,
    strategy: Strategy = None,
    api_url: ApiUrl = None,
    token: Annotated[str | None, PYTHON_ONLY] = None,
    token_file: TokenFile = None,
    split_sizes: SplitSizes = None,
    relations: Relations = None,
    negatives: Negatives = None,
    match: Match = None,
    ratio: Ratio = None,
    all_within_cluster: AllPairs = None,
    cluster_cap: ClusterCap = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: _Progress = True,
) -> Built:
    """Crawl repositories, detect duplicates, make pairs, split them, write the dataset and audit it.

    If a build was stopped, the same call continues it.

    Args:
        repos: owner/name,owner/name, or a file with one per line. In Python also a list.
        out: The dataset's folder.
        work: The folder of the crawl and its verdicts. Default: OUT.work.
        strategy: search: likely duplicates; sweep: every issue and comment.
        api_url: The root URL of the server's API.
        token: A GitHub token, or several separated by commas. Default: from GITHUB_TOKEN, a GitHub App's
            variables or `gh auth login`.
        token_file: A file with one token per line, instead of GITHUB_TOKEN.
        split_sizes: Sizes of train, validation and test: fractions or numbers of pairs. Default: all pairs,
            in the papers' proportions.
        relations: Relations whose pairs become positives: duplicate, same, reported, superseded, tracked,
            part-of; or all.
        negatives: random, hard (BM25) or mixed. In Python also a function: it takes the texts of one
            repository and split, and returns for each text the indices of other texts, best first:
            `[[2, 1], [0], ...]` tries text 2 before text 1 for text 0. Linked or too similar issues are
            still excluded. `run.json` records the function's qualified name, which identifies it.
        match: time: negatives have the same gaps between the opening times of their issues as positives; or
            none.
        ratio: Negatives for each positive. Default: 0.96, as in the papers.
        all_within_cluster: Pair all issues of a cluster, not only duplicate and original.
        cluster_cap: Maximum number of positives from one cluster.
        seed: Seed of every random choice.
        config: A TOML file of settings.
        settings: One setting, such as detect.min_confidence=0.8; repeatable. In Python a mapping of dotted
            keys to values. They override `config`; the arguments above override them.
        fresh: Replace a dataset made with other settings.
        progress: True shows progress on stderr, False hides it; a function gets each `pairkit.Progress`.

    Raises:
        ConfigError: A setting, a folder or a token is invalid, or no repository can be crawled.
        DataError: There are no duplicates, or the store is damaged.
        LeakError: The audit found a leak; the dataset is kept for inspection.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: All repositories failed; call it again to continue.
    """
    from gis_builder.pairing.build import build as build_dataset
    from gis_builder.store.repos import read_repos
    from pairkit.system.folders import work_beside

    merged = _merged(build, locals())
    names, folder = read_repos(repos), _path("out", out)
    work_folder = work_beside(folder) if work is None else _path("work", work)
    with _display(progress) as show:
        open_github = _opener(merged, token, token_file, show)
        return build_dataset(names, folder, work_folder, merged, open_github, show, fresh=fresh)


@same_arguments(build)
def plan(arguments: dict[str, Any]) -> Plan:
    """Estimate the points, requests and hours of a crawl. The estimate costs one point per 25 repositories.

    The arguments and errors are as for `build`; nothing is written.
    """
    from gis_builder.crawling.plan import plan as plan_crawl
    from gis_builder.store.repos import read_repos

    merged = _merged(build, arguments)
    names = read_repos(arguments["repos"])
    with _display(arguments["progress"]) as show:
        open_github = _opener(merged, arguments["token"], arguments["token_file"], show)
        return plan_crawl(names, merged, open_github)


def crawl(
    repos: ReposGiven,
    work: Work,
    *,
    update: Annotated[bool, Flag(main=True)] = False,
    strategy: Strategy = None,
    api_url: ApiUrl = None,
    token: Annotated[str | None, PYTHON_ONLY] = None,
    token_file: TokenFile = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    progress: _Progress = True,
) -> Crawled:
    """Fetch issues into the folder `work`. If a crawl was stopped, the same call continues it.

    Args:
        repos: See `build`.
        work: The crawl's folder, which is created if necessary.
        update: Bring a finished crawl up to date.
        strategy: See `build`.
        api_url: See `build`.
        token: See `build`.
        token_file: See `build`.
        seed: See `build`.
        config: See `build`.
        settings: See `build`.
        progress: See `build`.

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

    merged = _merged(crawl, locals())
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


def import_tracker(
    folder: Annotated[str | Path, Flag(metavar="DUMP", positional=True)],
    work: Work,
    *,
    links: Annotated[str | Path | None, Flag(metavar="FILE", main=True)] = None,
    link_columns: Annotated[
        Mapping[str, str] | None, Flag(metavar="A=B,…", panel=INPUT, read=partial(mapping, "--link-columns"))
    ] = None,
    columns: Columns = None,
    date_format: Annotated[str, Flag(metavar="FORMAT", panel=INPUT)] = "",
    repo: Annotated[str | None, Flag(metavar="OWNER/NAME", main=True)] = None,
    skip_broken: Annotated[bool, Flag(main=True)] = False,
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
        columns: Names of the columns, such as title=Betreff,id=Nr.
        date_format: The format of times, such as %d/%m/%Y %H:%M, as in Python's strptime. Default: from the
            times.
        repo: owner/name of all tickets, and of GitHub's objects without a repository. Default for tickets:
            host or `tickets`, and the project or the name of the file or folder.
        skip_broken: Skip and count damaged rows and files instead of stopping at the first one.
        progress: See `build`.

    Raises:
        ConfigError: `work` can't be written or has a crawl from a server; an argument is invalid.
        DataError: There is no saved tracker, or one of its lines is invalid.
    """
    from gis_builder.crawling import crawl as _crawl
    from gis_builder.crawling.status import Crawled, read_status
    from gis_builder.store.store import held_store

    work_folder, saved, options = _path("work", work), _path("folder", folder), _import_options(locals())
    with _display(progress) as show, held_store(work_folder) as store:
        rows = _crawl.import_tracker(store, saved, show.say, options)
        return Crawled(work_folder, rows, read_status(store))


@same_arguments(import_tracker)
def preview_import(arguments: dict[str, Any]) -> ImportPreview:
    """Show how an import reads its files: columns, times, links and the first three tickets.

    The arguments and errors are as for `import_tracker`; nothing is written.
    """
    from gis_builder.trackers.preview import preview

    return preview(_path("folder", arguments["folder"]), _import_options(arguments))


def status(work: Work) -> Status:
    """Show the progress of a crawl, even while it runs: issues, points used and left, time left.

    Args:
        work: The crawl's folder.

    Raises:
        ConfigError: There is no crawl in that folder.
        DataError: Its store is damaged.
    """
    from gis_builder.crawling.status import read_status
    from gis_builder.store.store import open_store

    with open_store(_path("work", work)) as store:
        return read_status(store)


def detect(
    work: Work, *, config: Config = None, settings: SettingsGiven = None, progress: _Progress = True
) -> Detected:
    """Decide for every fetched thread whether it was closed as a duplicate.

    Writes WORK/verdicts.parquet. A verdict is reused if its thread, and the issues that it depends on, are
    unchanged.

    Args:
        work: The crawl's folder.
        config: See `build`.
        settings: See `build`; settings of detection begin with `detect.`.
        progress: See `build`.

    Raises:
        ConfigError: A setting is invalid, or there is no crawl in that folder.
        DataError: Its store is damaged or has no issues.
    """
    from gis_builder.detection.detector import FILE, count_verdicts
    from gis_builder.detection.detector import detect as detect_duplicates
    from gis_builder.detection.results import Detected
    from gis_builder.store.store import held_store

    merged, verdicts = _merged(detect, locals()), _path("work", work) / FILE
    with _display(progress) as show, held_store(verdicts.parent, create=False) as store:
        store.check_issues()
        judged_anew = detect_duplicates(store, verdicts, store.repos(), merged.detect, show)
    return Detected(verdicts, count_verdicts(verdicts), judged_anew)


def explain(work: Work, issue: str, *, config: Config = None, settings: SettingsGiven = None) -> Explanation:
    """Explain the verdict on an issue: the evidence in order of time, with its weight.

    If a dataset was made, also why the issue or its pairs were left out of it.

    Args:
        work: The folder of a crawl or an archive.
        issue: `owner/name#number`.
        config: See `build`.
        settings: See `detect`.

    Raises:
        ConfigError: There is no crawl or archive in that folder, or it has no such issue.
        DataError: Its store is damaged.
    """
    from gis_builder.detection.detector import explain_thread
    from gis_builder.detection.results import Explanation
    from gis_builder.pairing.dataset import dropped_lines
    from gis_builder.pairing.results import DROPPED_FILE
    from gis_builder.store.store import open_store
    from pairkit.app.settings import argument

    merged, name, folder = _merged(explain, locals()), argument("issue", issue, str), _path("work", work)
    if (folder / "hours").is_dir():
        from gis_builder.gh_archive.judge import explain_archived

        verdict, text = explain_archived(folder, name, merged.detect)
    else:
        with open_store(folder) as store:
            verdict, text = explain_thread(store, name, merged.detect)
    text = "\n".join([text, *dropped_lines(folder / DROPPED_FILE, verdict.ref)])
    targets = tuple(map(str, verdict.targets))
    return Explanation(
        *(str(verdict.ref), str(verdict.outcome), targets, verdict.confidence, verdict.reason, text)
    )


def pair(
    work: Work,
    out: Annotated[str | Path, Out] = "gis-dataset",
    *,
    split_sizes: SplitSizes = None,
    relations: Relations = None,
    negatives: Negatives = None,
    match: Match = None,
    ratio: Ratio = None,
    all_within_cluster: AllPairs = None,
    cluster_cap: ClusterCap = None,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: _Progress = True,
) -> Built:
    """Make a dataset from a crawl and its verdicts, without any request to the server.

    The arguments and errors are as for `build`.

    Raises:
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
    from gis_builder.pairing.build import pair as pair_dataset

    merged = _merged(pair, locals())
    with _display(progress) as show:
        return pair_dataset(_path("out", out), _path("work", work), merged, show, fresh=fresh)


def archive(
    hours: Annotated[str, Flag(metavar="A..B")],
    source: Annotated[str | Path, Flag("-s", metavar="DIR")],
    out: Annotated[str | Path, Out] = "gis-archive",
    *,
    work: Annotated[str | Path | None, Flag("-w", metavar="DIR")] = None,
    exclude: Annotated[str | Path | None, Flag(metavar="FILE")] = None,
    workers: Annotated[int | None, Flag(metavar="N", panel=_TASKS)] = None,
    engine: Annotated[str, Flag(metavar="NAME", panel=_TASKS)] = "local",
    address: Annotated[str | None, Flag(metavar="HOST:PORT", panel=_TASKS)] = None,
    read_only: bool = False,
    seed: Seed = None,
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: _Progress = True,
) -> ArchiveBuilt | HoursRead:
    """Make a dataset of all public repositories from hours of GH Archive.

    No request is sent to GitHub. If a run was stopped, the same call continues it. Runs with the same `work`
    reuse each other's results, even if hours or settings differ. Workers and engine don't change the dataset.

    Args:
        hours: The first and the last day or hour in UTC, such as `2015-01-01..2015-12-31` or
            `2015-01-01-0..2015-01-01-5`.
        source: The folder of the archive's files, YYYY-MM-DD-H.json.gz; may lack hours that `work` has.
        out: The dataset's folder.
        work: The folder for intermediate results. Default: OUT.work.
        exclude: A file of exclusions, one per line: owner/name, owner/*, owner/name#12 or @login.
        workers: Number of processes. Default: the number of cores.
        engine: local, or ray for a cluster whose machines share `source`, `out` and `work`.
        address: The address of the Ray cluster, as printed by ray start.
        read_only: Only read the hours into `work`; their files can then be deleted.
        seed: See `build`.
        config: See `build`.
        settings: See `build`. Negatives can't be a function.
        fresh: See `build`.
        progress: See `build`.

    Raises:
        ConfigError: A setting or a folder is invalid.
        DataError: All hours are missing, or they contain no pair.
        LeakError: The audit found a leak; the dataset is kept for inspection.
    """
    from typing import Literal

    from pydantic import Field

    from gis_builder.gh_archive.hours import hours_between
    from gis_builder.gh_archive.judge import read_exclusions
    from gis_builder.gh_archive.run import Job, build_archive, read_hours
    from gis_builder.gh_archive.runners import choose_runner
    from gis_builder.settings import ArchiveSettings
    from pairkit.app.settings import argument, merge
    from pairkit.system.folders import work_beside

    merged = merge(ArchiveSettings, setting_keys(archive), locals(), config=config, settings=settings)
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


def render(
    work: Work,
    out: Annotated[str | Path, replace(Out, metavar="FILE")] = "issues.parquet",
    *,
    fresh: Fresh = False,
    progress: _Progress = True,
) -> Rendered:
    """Write the text of every issue, for `aoe index` and `aoe evaluate --suite duplicates`.

    Args:
        work: The folder of the crawl or import. A search has only some of the issues.
        out: A Parquet file with the columns id (`owner/name#number`), repo, number, url, text, created_at,
            state and labels; of tickets also key (`ABC-12`) and priority.
        fresh: Replace a file with other rows.
        progress: See `build`.

    Raises:
        ConfigError: There is no crawl in that folder, or `out` has other content or can't be written.
        DataError: The store is damaged, or has no issue with a text.

    Example:
        >>> import gis_builder
        >>> crawled = gis_builder.import_tracker("tracker", "gis.work", progress=False)
        >>> gis_builder.render("gis.work", "issues.parquet", progress=False).counts["written"] > 50
        True
    """
    from gis_builder.pairing.build import render_store
    from gis_builder.pairing.results import Rendered
    from gis_builder.store.store import open_store

    file = _path("out", out)
    with _display(progress) as show, open_store(_path("work", work)) as store:
        return Rendered(file, render_store(store, file, show, fresh=fresh))


def suggest(
    repo: Annotated[str, Flag(metavar="OWNER/NAME")],
    issue: Annotated[int | str, Flag(metavar="N|KEY")],
    *,
    index: Annotated[str | Path, Flag(metavar="INDEX")],
    work: Annotated[str | Path, Flag("-w", metavar="DIR", main=True)] = "gis.work",
    top: Annotated[int, Flag(metavar="N", main=True)] = 5,
) -> Suggested:
    """List older issues that an issue may duplicate.

    The issue's text, as rendered by `render`, is compared with the issues of its repository that were opened
    before it. Nothing is sent to GitHub.

    Args:
        repo: The repository.
        issue: The number of an issue, or the key of a ticket, such as ABC-12.
        index: The index that `aoe index` built from the table of `gis render`.
        work: The crawl's folder.
        top: Number of suggestions, at most 50.

    Raises:
        ConfigError: There is no crawl or no index.
        DataError: The issue is not in the crawl, or the index is damaged.
    """
    from gis_builder.pairing.suggest import suggest_for
    from gis_builder.store.records import IssueRef
    from gis_builder.store.repos import read_repos
    from gis_builder.store.store import open_store
    from pairkit.app.settings import argument

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


def demo(
    out: Annotated[str | Path, Out] = "demo", *, fresh: Fresh = False, progress: _Progress = True
) -> Built:
    """Build a dataset from the sample trackers: no token, no network.

    Args:
        out: The dataset's folder.
        fresh: Replace a dataset made with other settings.
        progress: See `build`.
    """
    from pairkit.system.folders import work_beside

    work = work_beside(_path("out", out))
    sample = next((folder for folder in _SAMPLES if folder.is_dir()), None)
    if sample is None:
        raise ConfigError("the sample trackers are missing from this installation; reinstall aoe-toolkit")
    import_tracker(sample, work, progress=progress)
    detect(work, progress=progress)
    return pair(work, out, fresh=fresh, progress=progress)


def _import_options(arguments: Mapping[str, Any]) -> ImportOptions:
    """The options in the arguments of `import_tracker`."""
    from gis_builder.trackers.ticket_files import ImportOptions
    from pairkit.app.settings import argument

    links = arguments["links"]
    return ImportOptions(
        None if links is None else _path("links", links),
        argument("columns", arguments["columns"], dict[str, str] | None) or {},
        argument("repo", arguments["repo"], str | None),
        argument("skip_broken", arguments["skip_broken"], bool),
        argument("link_columns", arguments["link_columns"], dict[str, str] | None) or {},
        argument("date_format", arguments["date_format"], str),
    )


def _merged(function: Callable[..., Any], arguments: Mapping[str, Any]) -> BuildSettings:
    """Merge a function's arguments with `config` and `settings`."""
    from gis_builder.settings import BuildSettings
    from pairkit.app.settings import merge

    config, settings = arguments["config"], arguments["settings"]
    return merge(BuildSettings, setting_keys(function), arguments, config=config, settings=settings)


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")


def _path(name: str, value: str | Path) -> Path:
    from pairkit.app.settings import argument

    path: Path = argument(name, value, Path)
    if _SCHEME.match(str(path)):  # otherwise a folder called s3: would be created
        raise ConfigError(f"{name} = {path}: expected a path, not a URL")
    return path


def _display(progress: _Progress) -> RunDisplay:
    from gis_builder.progress import RunDisplay

    return RunDisplay(progress)


def _opener(
    settings: BuildSettings, token: str | None, token_file: str | Path | None, show: RunDisplay
) -> Callable[[Store], GitHub]:
    """Return a factory of the crawl's client; tokens are found now, so that a missing token fails early."""
    import os

    from gis_builder.crawling.github import GitHub, find_tokens
    from pairkit.app.settings import argument

    token = argument("token", token, str | None)
    tokens = find_tokens(
        settings.crawl.api_url,
        file=None if token_file is None or token else _path("token_file", token_file),
        environ=os.environ if token is None else {"GITHUB_TOKEN": token},
        plain_http=settings.crawl.plain_http,
    )
    return lambda store: GitHub(settings.crawl, tokens, store, show.crawling)
