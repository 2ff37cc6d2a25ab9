"""What `gis_builder` offers: each command as a function, with the command's flags as keyword arguments.

Nothing heavy is imported before a function is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from gis_builder.crawling.github import GitHub, Token
    from gis_builder.crawling.plan import Plan
    from gis_builder.crawling.status import Status
    from gis_builder.progress.display import RunDisplay
    from gis_builder.results import ArchiveBuilt, Built, Crawled, Detected, Explanation, Rendered
    from gis_builder.settings import BuildSettings
    from gis_builder.settings.strategies import Rank
    from gis_builder.store import Store
    from gis_builder.suggestions import Backtested, Suggested
    from pairkit.app.progress import Listener

Repos: TypeAlias = str | Path | Iterable[str]
_Settings: TypeAlias = Mapping[str, Any] | Iterable[str]
_Progress: TypeAlias = "bool | Listener"


def build(
    repos: Repos,
    out: str | Path = "gis-dataset",
    *,
    work: str | Path | None = None,
    strategy: str | None = None,
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
    """
    from gis_builder.pairing.build import build as build_dataset
    from gis_builder.store.repos import read_repos
    from pairkit.system.folders import work_beside

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
    """
    from gis_builder.crawling.plan import plan as plan_crawl
    from gis_builder.store.repos import read_repos

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
    from gis_builder.crawling import crawl as _crawl
    from gis_builder.crawling.status import read_status
    from gis_builder.results import Crawled, IncompleteCrawlError
    from gis_builder.store import RepoOutcome
    from gis_builder.store.folders import held_store
    from gis_builder.store.repos import read_repos

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
    from gis_builder.crawling import crawl as _crawl
    from gis_builder.crawling.status import read_status
    from gis_builder.results import Crawled
    from gis_builder.store.folders import held_store

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
    from gis_builder.crawling.status import read_status
    from gis_builder.store.folders import open_store

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
    from gis_builder.detection.run import detect as detect_duplicates
    from gis_builder.detection.verdicts import FILE
    from gis_builder.results import detected
    from gis_builder.store.folders import held_store

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
    from gis_builder.detection.run import explain_thread
    from gis_builder.results import explanation
    from gis_builder.store.folders import open_store
    from pairkit.app.settings import argument

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
    from gis_builder.pairing.build import pair as pair_dataset

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
    top_up: bool = False,
    token: str | None = None,
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
    fresh: bool = False,
    progress: _Progress = True,
) -> ArchiveBuilt:
    """Make a dataset of all public repositories from hours of GH Archive.

    GitHub is asked for nothing, unless `top_up` is set.
    After an interruption, the same call continues. Workers and engine don't change the dataset.

    Args:
        hours: The first and the last day, or hour of a day, in UTC: `2015-01-01..2015-12-31`,
            `2015-01-01-0..2015-01-01-5`.
        source: The folder with the archive's files, `YYYY-MM-DD-H.json.gz`.
        out: The dataset's folder.
        work: The folder for results of tasks, by default OUT.work. A later run with other hours or settings
            uses again what they have in common.
        exclude: A file of what stays out: `owner/name`, `owner/*`, `owner/name#12`, `@login`, one a line.
        top_up: Ask GitHub for issues that were named as originals but have no event in the hours.
        token: See `build`; for `top_up`.
        workers: Processes on this machine; by default one for each core.
        engine: `local`, or `ray` for a Ray cluster whose machines share `source`, `out` and `work`.
        address: The cluster's, such as `10.0.0.1:6379`.
        seed: See `build`.
        config: See `build`.
        settings: See `build`; negatives can't be a function.
        fresh: See `build`.
        progress: See `build`.

    Raises:
        ConfigError: A setting or a folder can't be used.
        DataError: None of the hours is there, or they hold no pair.
        RemoteError: GitHub failed for good; called again, it continues.
        LeakError: The audit found a leak; the dataset is left for inspection.
    """
    from typing import Annotated, Literal

    from pydantic import Field

    from gis_builder.gh_archive.barred import read_exclusions
    from gis_builder.gh_archive.hours import hours_between
    from gis_builder.gh_archive.maps import runner_of
    from gis_builder.gh_archive.run import Job, build_archive
    from gis_builder.settings import ArchiveSettings, BuildSettings, CrawlSettings
    from gis_builder.settings.flags import ARCHIVE
    from pairkit.app.settings import argument, merge
    from pairkit.system.folders import work_beside

    merged = merge(ArchiveSettings, ARCHIVE, locals(), config=config, settings=settings)
    folder = _path("out", out)
    runner = runner_of(
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
            _opener(BuildSettings(crawl=CrawlSettings(api_url=merged.api_url)), token, None, show)
            if argument("top_up", top_up, bool)
            else None,
        )
        with runner:
            return build_archive(job, folder, runner, show, fresh=fresh)


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
    from gis_builder.pairing.render import render_store
    from gis_builder.results import Rendered
    from gis_builder.store.folders import open_store

    place, file = _path("work", work), _path("out", out)
    with _display(progress) as show, open_store(place) as store:
        return Rendered(file, render_store(store, file, show))


def suggest(
    repo: str,
    issue: int | None = None,
    *,
    index: str | Path,
    work: str | Path = "gis.work",
    title: str | None = None,
    body: str = "",
    top: int = 5,
) -> Suggested:
    """List older issues that an issue may repeat.

    The issue is rendered as `render` does it, and searched for by `aoe search` among the issues of its
    repository that were opened before it. Nothing is sent to GitHub.

    Args:
        repo: `owner/name`.
        issue: The number of an issue of the crawl; None for a new text, which `title` and `body` give.
        index: A folder that `aoe index` made of what `render` wrote.
        work: The folder of the crawl.
        title: The title of a new text.
        body: Its body.
        top: Suggestions at most, from 1 to 50.

    Raises:
        ConfigError: Neither an issue nor a title, or both; no crawl or index there.
        DataError: No such issue in the crawl, or the index is damaged.
    """
    from gis_builder.store.crawled import site_of
    from gis_builder.store.folders import open_store
    from gis_builder.store.records import IssueRef
    from gis_builder.store.repos import read_repos
    from gis_builder.suggestions import suggest_for, suggest_new
    from pairkit.app.errors import ConfigError
    from pairkit.app.settings import argument

    (name,) = read_repos([repo])
    if (issue is None) == (title is None):
        raise ConfigError("expected --issue (issue=) with a number, or --title (title=) with a new text")
    if not 1 <= argument("top", top, int) <= 50:
        raise ConfigError(f"top {top}: expected 1 to 50")
    folder = _path("index", index)
    with open_store(_path("work", work)) as store:
        if title is not None:
            return suggest_new(name, title, body, folder, top, site_of(store))
        return suggest_for(store, IssueRef(name, argument("issue", issue, int)), folder, top)


def backtest(
    hits: str | Path,
    work: str | Path = "gis.work",
    *,
    since: str | None = None,
    relations: str | Sequence[str] | None = None,
    config: str | Path | None = None,
    settings: _Settings | None = None,
) -> Backtested:
    """Measure on a tracker's past how often a search finds what an issue repeats (R@k).

    Args:
        hits: What `aoe search INDEX --every --before created_at` wrote, of an index of what `render` wrote.
        work: The folder of the crawl, with the verdicts of `detect`.
        since: Judge only issues opened from this time on, as in created_at (2015-01-01T00:00:00Z): for a
            model that was trained on older ones.
        relations: Which relations make an issue repeat another; see `build`.
        config: See `build`.
        settings: See `build`.

    Raises:
        ConfigError: There is no crawl.
        DataError: No verdicts, no such hits, or hits that are not older than their issue.
    """
    from gis_builder.detection.verdicts import FILE, read_duplicates
    from gis_builder.store.folders import open_store
    from gis_builder.suggestions import backtest as judge

    merged = _merged(locals())
    place = _path("work", work)
    with open_store(place) as store:
        duplicates = read_duplicates(place / FILE)
        return judge(_path("hits", hits), store, duplicates, merged.pair.relations, since)


def demo(out: str | Path = "demo", *, progress: _Progress = True) -> Built:
    """Build a dataset of the sample trackers, which are imported: no token, no network."""
    from gis_builder.store.folders import sample_folder
    from pairkit.system.folders import work_beside

    work = work_beside(_path("out", out))
    import_tracker(sample_folder(), work, progress=progress)
    detect(work, progress=progress)
    return pair(work, out, progress=progress)


def _merged(given: Mapping[str, Any]) -> BuildSettings:
    """The settings that a function's arguments make, `config` and `settings` among them."""
    from gis_builder.settings import BuildSettings
    from gis_builder.settings.flags import FLAGS
    from pairkit.app.settings import merge

    return merge(BuildSettings, FLAGS, given, config=given["config"], settings=given["settings"])


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")


def _path(name: str, given: str | Path) -> Path:
    from pairkit.app.settings import argument

    place: Path = argument(name, given, Path)
    if _SCHEME.match(str(place)):  # a folder called s3: would be made
        raise ConfigError(f"{name} = {place}: is a URL, where a path is expected")
    return place


def _paths(name: str, given: str | Path | Sequence[str | Path]) -> list[Path]:
    from pairkit.app.settings import argument

    places: list[Path] = argument(name, [given] if isinstance(given, str | Path) else given, list[Path])
    return places


def _display(progress: _Progress) -> RunDisplay:
    from gis_builder.progress.display import RunDisplay

    return RunDisplay(progress)


def _opener(
    settings: BuildSettings, token: str | None, token_file: str | Path | None, show: RunDisplay
) -> Callable[[Store], GitHub]:
    """What makes the crawl's client; tokens are found at once, so that a missing one costs nothing."""
    from gis_builder.crawling.github import GitHub

    tokens = _tokens(settings, token, token_file)
    return lambda store: GitHub(settings.crawl, tokens, store, show.crawling)


def _tokens(settings: BuildSettings, token: str | None, token_file: str | Path | None) -> tuple[Token, ...]:
    import os

    from gis_builder.crawling.github import find_tokens
    from pairkit.app.settings import argument

    token = argument("token", token, str | None)
    return find_tokens(
        settings.crawl.api_url,
        file=None if token_file is None or token else _path("token_file", token_file),
        environ=os.environ if token is None else {"GITHUB_TOKEN": token},
        plain_http=settings.crawl.plain_http,
    )
