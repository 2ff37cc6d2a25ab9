"""What `gis_builder` offers: each command as a function, with the command's flags as keyword arguments.

Nothing heavy is imported before a function is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from gis_builder._archive.objects import Location
    from gis_builder._archive.source import Source
    from gis_builder._emulator import Server
    from gis_builder._github import GitHub, Token
    from gis_builder._plan import Plan
    from gis_builder._progress import RunDisplay
    from gis_builder._results import ArchiveBuilt, Built, Crawled, Detected, Explanation, Rendered, ShardDone
    from gis_builder._settings import BuildSettings
    from gis_builder._status import Status
    from gis_builder._store import Store
    from gis_builder._strategies import Rank
    from gis_builder._suggest.backtest import Backtested
    from gis_builder._suggest.found import Suggested
    from pairkit.progress import Listener

Repos: TypeAlias = str | Path | Iterable[str]
_Settings: TypeAlias = Mapping[str, Any] | Iterable[str]
_Progress: TypeAlias = "bool | Listener"


def build(
    repos: Repos,
    out: str | Path = "gis-dataset",
    *,
    work: str | Path | None = None,
    strategy: str | None = None,
    api: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    split: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> Built:
    """Crawl repositories, detect duplicates, make pairs, split them, write the dataset and audit it.

    If it was stopped, the same call continues.

    Args:
        repos: `owner/name`, several with commas or as a list, or a file with one per line.
        out: The dataset's folder.
        work: The folder of the crawl and its verdicts; by default OUT.work.
        strategy: `search` for likely duplicates only (default), `sweep` for every issue and comment.
        api: `graphql` (default), or `rest` for servers without it.
        api_url: The server's root; by default https://api.github.com.
        token: A GitHub token, or several with commas; by default what GITHUB_TOKEN, a GitHub App's variables
            or `gh auth login` give.
        token_file: A file with one token per line instead.
        split: Sizes of train, validation and test, as shares or as exact numbers of pairs.
        relations: Which relations become positives: `duplicate` (default), `same`, `reported`, `superseded`,
            `tracked`, `part-of`, or `all`.
        negatives: `random` (default), `hard` (by BM25), `mixed`, or your own function. It is given the texts
            of the issues of one repository and split, and returns for each of them the places of others,
            best first: `[[2, 1], [0], ...]` has text 0 try text 2 before text 1. Two issues that are linked,
            or too much alike, are still kept apart. The run keeps the function's qualified name; a run with
            the same name counts as the same.
        match: What negatives share with positives: `time` (default), `template`, `none`.
        ratio: Negatives for each positive; by default the papers' 0.96.
        all_within_cluster: Pair every two issues of a cluster instead of duplicate and canonical issue only.
        seed: Decides every random choice; 42 by default.
        config: A TOML file with settings that differ from the defaults.
        settings: Settings by dotted key, such as `{"pair.cluster_cap": 10}`; they go over `config`, and the
            arguments above go over them.
        fresh: Replace a dataset that was made with other settings.
        progress: True shows it on stderr, False nowhere; a function is called with each `pairkit.Progress`.

    Raises:
        ConfigError: A setting, a folder or a token is no good.
        DataError: There is nothing to crawl, there are no duplicates, or the store is damaged.
        LeakError: The audit found a leak; the dataset is left to be looked at.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: The server failed for all; call it again to continue.

    Example:
        >>> import gis_builder
        >>> with gis_builder.emulate("tracker") as server:
        ...     built = gis_builder.build(
        ...         ["quarryhq/quarry"], out="gis", api_url=server.url, token="any", progress=False
        ...     )
        >>> built.out.name, built.positives > 20
        ('gis', True)
    """
    from gis_builder._build import build as build_dataset
    from gis_builder._repos import read_repos
    from pairkit.folders import work_beside

    merged = _merged(locals())
    names, folder = read_repos(repos), _path("out", out)
    place = work_beside(folder) if work is None else _path("work", work)
    with _display(progress) as show:
        opened = _opener(merged, token, token_file, show)
        return build_dataset(names, folder, place, merged, opened, show, fresh=fresh)


def plan(
    repos: Repos,
    *,
    strategy: str | None = None,
    api: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    split: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    progress: _Progress = True,
) -> Plan:
    """Price a crawl by repository, in points, requests and hours of one token; costs a point for 25 of them.

    The arguments, and what is raised, are as for `build`; those that cost nothing are checked all the same.

    Example:
        >>> import gis_builder
        >>> with gis_builder.emulate("tracker") as server:
        ...     gis_builder.plan(["quarryhq/quarry"], api_url=server.url, token="any", progress=False).points
        3
    """
    from gis_builder._plan import plan as plan_crawl
    from gis_builder._repos import read_repos

    merged = _merged(locals())
    names = read_repos(repos)
    with _display(progress) as show:
        return plan_crawl(names, merged, _opener(merged, token, token_file, show))


def crawl(
    repos: Repos,
    work: str | Path,
    *,
    update: bool = False,
    archive: str | Path | Sequence[str | Path] = (),
    strategy: str | None = None,
    api: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    progress: _Progress = True,
) -> Crawled:
    """Only fetch, into the folder `work`; called again, it continues.

    Args:
        repos: See `build`.
        work: The folder of the crawl; made where it is absent.
        update: Bring a finished crawl up to date.
        archive: Hours of GH Archive, as a file or several, that propose candidates instead of a search.
        strategy: See `build`.
        api: See `build`.
        api_url: See `build`.
        token: See `build`.
        token_file: See `build`.
        seed: Decides which issues are fetched to serve in negatives.
        config: See `build`.
        settings: See `build`.
        progress: See `build`.

    Raises:
        ConfigError: A setting, the folder or a token is no good, or it holds a crawl with other settings.
        DataError: None of the repositories can be crawled, or the store is damaged.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: The server failed for all; call it again to continue.
    """
    from gis_builder import _crawl
    from gis_builder._folders import held_store
    from gis_builder._repos import read_repos
    from gis_builder._results import Crawled, IncompleteCrawlError
    from gis_builder._status import read_status
    from gis_builder._store import RepoOutcome

    merged = _merged(locals())
    names, folder, hours = read_repos(repos), _path("work", work), _paths("archive", archive)
    with _display(progress) as show:
        opened = _opener(merged, token, token_file, show)
        with held_store(folder) as store:
            with opened(store) as github:
                if hours:
                    rows = _crawl.crawl_archive(github, store, names, hours, merged, show)
                else:
                    fetch = _crawl.update if update else _crawl.crawl
                    rows = fetch(github, store, names, merged, show)
            crawled = Crawled(folder, rows, read_status(store))
    if any(row.outcome is RepoOutcome.FAILED for row in rows):
        raise IncompleteCrawlError(crawled)
    return crawled


def import_tracker(folder: str | Path, work: str | Path, *, progress: _Progress = True) -> Crawled:
    """Fill the folder `work` from a saved tracker instead of a server.

    Args:
        folder: A folder with saved trackers, or one file of JSON; `gis import --help` says which are read.
        work: The folder of the crawl; made where it is absent.
        progress: See `build`.

    Raises:
        ConfigError: `work` can't be written, or holds a server's crawl.
        DataError: There is no tracker, or a line of it is malformed.
    """
    from gis_builder import _crawl
    from gis_builder._folders import held_store
    from gis_builder._results import Crawled
    from gis_builder._status import read_status

    place, saved = _path("work", work), _path("folder", folder)
    with _display(progress) as show, held_store(place) as store:
        rows = _crawl.import_tracker(store, saved, show.say)
        return Crawled(place, rows, read_status(store))


def status(work: str | Path) -> Status:
    """How far a crawl is: issues by repository, points used and left, time to go; also while it runs.

    Raises:
        ConfigError: There is no crawl in that folder.
        DataError: Its store is damaged.
    """
    from gis_builder._folders import open_store
    from gis_builder._status import read_status

    with open_store(_path("work", work)) as store:
        return read_status(store)


def detect(
    work: str | Path,
    *,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    progress: _Progress = True,
) -> Detected:
    """Decide for every fetched thread whether it was closed as a duplicate; writes WORK/verdicts.parquet.

    A thread is judged again only if it changed, or what its verdict rests on.

    Args:
        work: The folder of a crawl.
        config: See `build`.
        settings: See `build`; those of detection begin with `detect.`.
        progress: See `build`.

    Raises:
        ConfigError: A setting is wrong, or there is no crawl in that folder.
        DataError: Its store is damaged.
    """
    from gis_builder._detection import detect as detect_duplicates
    from gis_builder._folders import held_store
    from gis_builder._results import detected
    from gis_builder._verdicts import FILE

    merged, place = _merged(locals()), _path("work", work)
    with _display(progress) as show, held_store(place, create=False) as store:
        judged_anew = detect_duplicates(store, place / FILE, store.repos(), merged.detect, show)
    return detected(place / FILE, judged_anew)


def explain(
    work: str | Path,
    issue: str,
    *,
    config: str | Path | None = None,
    settings: _Settings | None = None,
) -> Explanation:
    """Say why an issue is, or is not, a duplicate: the evidence in order of time, and what it counts for.

    Args:
        work: The folder of a crawl.
        issue: `owner/name#number`.
        config: See `build`.
        settings: See `detect`.

    Raises:
        ConfigError: There is no crawl in that folder, or it has no such issue.
        DataError: Its store is damaged.
    """
    from gis_builder._detection import explain_thread
    from gis_builder._folders import open_store
    from gis_builder._results import explanation
    from pairkit.config import argument

    merged, name = _merged(locals()), argument("issue", issue, str)
    with open_store(_path("work", work)) as store:
        return explanation(*explain_thread(store, name, merged.detect))


def pair(
    work: str | Path,
    out: str | Path = "gis-dataset",
    *,
    split: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> Built:
    """Make a dataset from a crawl and its verdicts; the server is not asked for anything.

    The arguments, and what is raised, are as for `build`.

    Raises:
        DataError: There are no verdicts, or they are older than the crawl; there are no duplicates.

    Example:
        >>> import gis_builder
        >>> def by_length(texts):
        ...     near = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        ...     return [sorted(near, key=lambda other: abs(len(texts[other]) - len(text))) for text in texts]
        >>> crawled = gis_builder.import_tracker("tracker", "gis.work", progress=False)
        >>> detected = gis_builder.detect("gis.work", progress=False)
        >>> built = gis_builder.pair("gis.work", "gis", negatives=by_length, progress=False)
        >>> "__main__.by_length" in built.statistics["negative_kinds"]
        True
    """
    from gis_builder._build import pair as pair_dataset

    merged = _merged(locals())
    folder, place = _path("out", out), _path("work", work)
    with _display(progress) as show:
        return pair_dataset(folder, place, merged, show, fresh=fresh)


def archive(
    hours: str,
    source: str | Path,
    out: str | Path = "gis-archive",
    *,
    work: str | Path | None = None,
    exclude: str | Path | None = None,
    min_closed: int | None = None,
    per_repo_max: int | None = None,
    language: str | Sequence[str] | None = None,
    incomplete: bool = False,
    top_up: bool = False,
    api: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    parallel: int = 4,
    keep_hours: bool = False,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    shard: str | None = None,
    partitions: int = 64,
    split: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    negatives: str | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> ArchiveBuilt | ShardDone:
    """Make a dataset of all public repositories from hours of GH Archive.

    GitHub is asked for nothing, unless `top_up` is set.
    If it was stopped, the same call continues. Workers, shards and partitions don't change the dataset.

    Args:
        hours: The first and the last day, or hour of a day, in UTC: `2015-01-01..2015-12-31`,
            `2015-01-01-0..2015-01-01-5`.
        source: A folder with the archive's files, `YYYY-MM-DD-H.json.gz`, or the root of a server that has
            them, `https://data.gharchive.org`.
        out: The dataset's folder.
        work: What the tasks make: a folder, by default OUT.work, or `s3://bucket/folder`; then OUT.work has
            what is this machine's own. Shards must share it.
        exclude: A file of what stays out: `owner/name`, `owner/*`, `owner/name#12`, `@login`, one a line.
        min_closed: Closed issues that a repository has at least; 1 by default.
        per_repo_max: Most positives of one repository.
        language: Only repositories mostly written in these programming languages, `Rust,C++`, as their pull
            requests in the hours say it; of unknown ones none.
        incomplete: Allow hours after 2025-05-23, of which the archive holds a part of the events only.
        top_up: Ask GitHub for issues that were named as originals but have no event in the hours.
        api: See `build`; for `top_up`, as the next three.
        api_url: See `build`.
        token: See `build`.
        token_file: See `build`.
        parallel: Connections to the server at once, of all processes that share `work`.
        keep_hours: Leave the hours that were downloaded in WORK/downloaded, in place of deleting each once it
            was read.
        engine: `local`, or `ray` for the tasks to run on a Ray cluster whose machines share `source` and
            `work`.
        address: The cluster's, such as `10.0.0.1:6379`.
        workers: Processes on this machine; by default one for each core.
        shard: Do only one share of the tasks, such as `2/8`, for other machines to do the others.
        partitions: How many parts the repositories are judged in; more take less memory each.
        split: See `build`.
        relations: See `build`.
        negatives: See `build`; without functions.
        match: See `build`.
        ratio: See `build`.
        all_within_cluster: See `build`.
        seed: See `build`.
        config: See `build`.
        settings: See `build`.
        fresh: See `build`.
        progress: See `build`.

    Returns:
        The dataset; with `shard`, how far its tasks are.

    Raises:
        ConfigError: A setting or a folder is no good.
        DataError: None of the hours is there, or no pair is in them.
        RemoteError: The server failed for good; called again, it continues.
        LeakError: The audit found a leak; the dataset is left to be looked at.
    """
    from dataclasses import replace
    from typing import Annotated, Literal

    from pydantic import Field

    from gis_builder._archive.engine import engine_of
    from gis_builder._archive.exclusions import read_exclusions
    from gis_builder._archive.hours import hours_between
    from gis_builder._archive.job import Job, Topping
    from gis_builder._archive.objects import location_at
    from gis_builder._archive.run import run_all, run_shard
    from gis_builder._flags import ARCHIVE, FLAGS
    from gis_builder._settings import ArchiveSettings, BuildSettings
    from pairkit.config import argument, merge
    from pairkit.folders import work_beside
    from pairkit.shards import Shard

    merged = merge(ArchiveSettings, ARCHIVE, locals(), config=config, settings=settings)
    folder = _path("out", out)
    place = work_beside(folder) if work is None or _is_url(work) else _path("work", work)
    results = location_at(work, "work") if _is_url(work) else place
    positive = Annotated[int, Field(ge=1)]
    job = Job(
        hours=hours_between(argument("hours", hours, str), incomplete=incomplete),
        source=_source(source, place, results, argument("parallel", parallel, positive), keep=keep_hours),
        work=place,
        results=results,
        settings=merged,
        excluded=() if exclude is None else read_exclusions(_path("exclude", exclude)),
        partitions=argument("partitions", partitions, positive),
    )
    share = None if shard is None else Shard.named(argument("shard", shard, str))
    chosen = engine_of(
        argument("engine", engine, Literal["local", "ray"]),
        argument("workers", workers, positive | None),
        argument("address", address, str | None),
    )
    with _display(progress) as show, chosen as runs:
        if share is not None:
            return run_shard(job, share, runs, show)
        if argument("top_up", top_up, bool):
            served = merge(BuildSettings, FLAGS, {"api": api, "api_url": api_url})
            opened = _opener(served, token, token_file, show)
            job = replace(job, topping=Topping(served.crawl.api_url, opened))
        return run_all(job, folder, runs, show, fresh=fresh)


def _source(given: str | Path, work: Path, results: Location, parallel: int, *, keep: bool) -> Source:
    """A folder, or a server where a URL is given."""
    from gis_builder._archive.mirror.server import mirror_at
    from gis_builder._archive.source import Folder

    if _is_url(given):
        return mirror_at(given, work, results, parallel, keep=keep)
    return Folder(_path("source", given))


def render(work: str | Path, out: str | Path = "issues.parquet", *, progress: _Progress = True) -> Rendered:
    """Write the text of every issue of a crawl, as it would stand in a dataset: what a search is tested on.

    Args:
        work: The folder of a crawl; one with `strategy="sweep"`, or of a saved tracker, has all issues.
        out: The file, Parquet with id (`owner/name#number`), repo, number, url, text and created_at.
        progress: See `build`.

    Raises:
        ConfigError: There is no crawl in that folder, another file stands in the place of this one, or it
            can't be written.
        DataError: The store is damaged, or has no issue with a text.

    Example:
        >>> import gis_builder
        >>> crawled = gis_builder.import_tracker("tracker", "gis.work", progress=False)
        >>> gis_builder.render("gis.work", "issues.parquet", progress=False).counts["written"] > 50
        True
    """
    from gis_builder._folders import open_store
    from gis_builder._render import render_store
    from gis_builder._results import Rendered

    place, file = _path("work", work), _path("out", out)
    with _display(progress) as show, open_store(place) as store:
        return Rendered(file, render_store(store, file, show))


def suggest(
    repo: str,
    issue: int | None = None,
    *,
    title: str | None = None,
    body: str = "",
    index: str | Path | None = None,
    server: str | None = None,
    server_key: str = "",
    calibration: str | Path | None = None,
    top: int = 5,
    least: float = 0.9,
    comment: bool = False,
    label: str | None = None,
    dry_run: bool = True,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    progress: _Progress = True,
) -> Suggested:
    """Name older issues that an issue may repeat; and perhaps write a comment or a label, once.

    The issue is read from GitHub over REST, rendered as `render` does it, and looked for among the issues of
    its repository that were opened before it. What is found is shown as it is on GitHub now.

    Args:
        repo: `owner/name`.
        issue: The issue's number; None for one that is not written yet, of which title and body are given.
        title: Of an issue that is not written yet.
        body: Of such an issue.
        index: A folder that `aoe index` made of what `render` wrote; it is asked by `aoe search`.
        server: The root of an `aoe serve` with such an index, instead.
        server_key: What the server's requests have to bear.
        calibration: A file that `backtest` learnt; without it probabilities are those that the index tells of
            pairs, and nothing can be written.
        top: Suggestions at most, from 1 to 50.
        least: The lowest probability of what is written.
        comment: Write a comment with the suggestions that are probable enough, unless there is one.
        label: Put this label on the issue if a suggestion is probable enough, unless it was ever put there.
        dry_run: Only say what would be written.
        api_url: See `build`.
        token: See `build`; to write it needs the permission to write issues.
        token_file: See `build`.
        config: See `build`.
        settings: See `build`.
        progress: Whether waits are told on stderr.

    Raises:
        ConfigError: What is asked for can't be done, or there is no index or calibration.
        DataError: There is no such issue, or the index or calibration is damaged.
        RemoteError: A server failed, or refused the token; call it again.
    """
    from gis_builder._github import Notices
    from gis_builder._records import IssueRef
    from gis_builder._repos import read_repos
    from gis_builder._suggest.calibration import read_calibration
    from gis_builder._suggest.candidates import IndexSearch, ServerSearch
    from gis_builder._suggest.suggest import Wanted, suggest_for, suggest_new
    from pairkit.config import argument
    from pairkit.errors import ConfigError

    merged = _merged(locals())
    (name,) = read_repos([repo])
    if (issue is None) == (title is None):
        raise ConfigError("expected one repository, and the number of an issue or the title of a new one")
    if (index is None) == (server is None):
        raise ConfigError("expected an index or a server to look in")
    learnt = None if calibration is None else read_calibration(_path("calibration", calibration))
    wanted = Wanted(top, least, comment, label, dry_run)
    wanted.check(learnt, is_new=issue is None)
    search = ServerSearch(server or "", server_key) if index is None else IndexSearch(_path("index", index))
    with _display(progress) as show:
        notices = Notices(merged.crawl, _tokens(merged, token, token_file)[0], show.crawling)
        try:
            if issue is None:
                return suggest_new(notices, name, title or "", body, search, learnt, wanted)
            ref = IssueRef(name, argument("issue", issue, int))
            return suggest_for(notices, ref, search, learnt, wanted)
        finally:
            notices.close()


def backtest(
    hits: str | Path,
    work: str | Path,
    out: str | Path = "backtest",
    *,
    relations: str | Sequence[str] | None = None,
    learn: float = 0.5,
    config: str | Path | None = None,
    settings: _Settings | None = None,
) -> Backtested:
    """Replay a tracker in order of time: what would have been suggested, and was it right?

    How probable it is that a suggestion is right is learnt on the earlier part, and judged on the later one.
    Duplicates that nobody marked count as wrong.

    Args:
        hits: What `aoe search INDEX --every --before created_at` wrote, of an index of what `render` wrote.
        work: The folder of the crawl, with the verdicts of `detect`.
        out: A folder for calibration.json, backtest.json, suggestions.parquet and, with matplotlib,
            precision.svg; a backtest that it holds is replaced.
        relations: Which relations make an issue repeat another; see `build`.
        learn: The share of the issues that make the earlier part.
        config: See `build`.
        settings: See `build`.

    Raises:
        ConfigError: There is no crawl, or `out` holds something else.
        DataError: No verdicts, no such hits, younger ones among them, or too few right ones to learn from.
    """
    from gis_builder._folders import open_store
    from gis_builder._suggest.backtest import backtest as backtest_replay
    from gis_builder._suggest.backtest import check_out
    from gis_builder._suggest.replay import read_replay
    from gis_builder._verdicts import FILE, read_duplicates
    from pairkit.errors import ConfigError

    merged = _merged(locals())
    place, folder = _path("work", work), _path("out", out)
    if not 0 < learn < 1:
        raise ConfigError(f"learn {learn}: expected a share between 0 and 1")
    check_out(folder)
    with open_store(place) as store:
        known = read_duplicates(place / FILE)
        replay = read_replay(_path("hits", hits), store, known, merged.pair.relations)
    return backtest_replay(replay, folder, learn=learn)


def demo(out: str | Path = "demo", *, progress: _Progress = True) -> Built:
    """Build a dataset of the sample tracker over HTTP from a local emulator: no token, no network."""
    from gis_builder._folders import sample_folder

    sample = sample_folder()
    repos = [f"{path.parent.parent.name}/{path.parent.name}" for path in sorted(sample.glob("*/*/repo.json"))]
    with emulate(sample) as server:
        _display(progress).say(f"a local GitHub with {len(repos)} sample projects listens at {server.url}")
        return build(repos, out, api_url=server.url, token="demo", progress=progress)  # noqa: S106 - any will do


def emulate(
    dump: str | Path | Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: str | Path | None = None,
    latency: float = 0.0,
    replicate: int = 1,
    points: int = 5000,
    window: float = 3600.0,
) -> Server:
    """Serve saved trackers as a local GitHub over GraphQL and REST; any token works except `bad`.

    Args:
        dump: Folders with saved trackers; `gis import --help` says which are read.
        host: The address to listen at.
        port: The port; 0 takes any free one.
        faults: A TOML plan of what goes wrong.
        latency: Seconds that each answer takes at least.
        replicate: Serve each repository so often, the further ones as `owner/name-2` and so on.
        points: Points that a token has in a window.
        window: Seconds of a window.

    Returns:
        The server, which answers at its `url` until it is closed; also a context manager.

    Raises:
        ConfigError: The plan is malformed, or the port is taken.
        DataError: A tracker is missing or malformed.
    """
    from pydantic import NonNegativeFloat

    from gis_builder._emulator import Options, serve
    from pairkit.config import argument, load_settings

    return serve(
        _paths("dump", dump),
        host=argument("host", host, str),
        port=argument("port", port, int),
        faults=argument("faults", faults, Path | None),
        latency_s=argument("latency", latency, NonNegativeFloat),
        replicate=argument("replicate", replicate, int),
        options=load_settings(Options, flags={"points": points, "window_s": window}),
    )


def _merged(given: Mapping[str, Any]) -> BuildSettings:
    """The settings that a function's arguments make, `config` and `settings` among them."""
    from gis_builder._flags import FLAGS
    from gis_builder._settings import BuildSettings
    from pairkit.config import merge

    return merge(BuildSettings, FLAGS, given, config=given["config"], settings=given["settings"])


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")


def _is_url(given: str | Path | None) -> TypeGuard[str]:
    return isinstance(given, str) and "://" in given


def _path(name: str, given: str | Path) -> Path:
    from pairkit.config import argument

    place: Path = argument(name, given, Path)
    if _SCHEME.match(str(place)):  # a folder called s3: would be made
        raise ConfigError(f"{name} = {place}: is a URL, where a path is expected")
    return place


def _paths(name: str, given: str | Path | Sequence[str | Path]) -> list[Path]:
    from pairkit.config import argument

    places: list[Path] = argument(name, [given] if isinstance(given, str | Path) else given, list[Path])
    return places


def _display(progress: _Progress) -> RunDisplay:
    from gis_builder._progress import RunDisplay

    return RunDisplay(progress)


def _opener(
    settings: BuildSettings, token: str | None, token_file: str | Path | None, show: RunDisplay
) -> Callable[[Store], GitHub]:
    """What makes the crawl's client; tokens are found at once, so that a missing one costs nothing."""
    from gis_builder._github import GitHub, GraphQLRoute, RestRoute

    tokens = _tokens(settings, token, token_file)
    route = RestRoute if settings.api == "rest" else GraphQLRoute
    return lambda store: GitHub(settings.crawl, tokens, store, show.crawling, route)


def _tokens(settings: BuildSettings, token: str | None, token_file: str | Path | None) -> tuple[Token, ...]:
    import os

    from gis_builder._github import find_tokens
    from pairkit.config import argument

    token = argument("token", token, str | None)
    return find_tokens(
        settings.crawl.api_url,
        file=None if token_file is None or token else _path("token_file", token_file),
        environ=os.environ if token is None else {"GITHUB_TOKEN": token},
        plain_http=settings.crawl.plain_http,
    )
