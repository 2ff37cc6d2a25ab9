"""Datasets: of a crawl, of an archive, and of the sample trackers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from gis_builder.api.common_options import (
    GitHubRequest,
    build_settings,
    display,
    opener,
    options,
    path_of,
    read_repos,
)
from gis_builder.api.crawls import detect, import_tracker
from pairkit.base.cli.options import Request, parameter, takes
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from gis_builder.crawling.crawl import Plan
    from gis_builder.gh_archive.archive_run import Job
    from gis_builder.gh_archive.runners import Runner
    from gis_builder.pairing.pairing_results import ArchiveBuilt, Built, HoursRead
    from gis_builder.settings.negative_strategies import Rank
    from pairkit.base.cli.progress import Listener

_TASKS = "Tasks"
_PACKAGE = Path(__file__).resolve().parents[1]
# The sample trackers are in the installed package, or beside it in the source tree.
_SAMPLES = (
    _PACKAGE / "data" / "sample",
    _PACKAGE.parent / "data" / "sample",
)


class _CrawlRequest(
    GitHubRequest, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments of a build's crawl."""

    _: KW_ONLY
    work: str | Path | None = None


class _PairRequest(
    Request, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments of `build` and `pair` on pairs and splits."""

    _: KW_ONLY
    split_sizes: str | Sequence[float] | None = None
    relations: str | Sequence[str] | None = None
    min_same_probability: float | None = None
    negatives: str | Rank | None = None
    match: str | None = None
    ratio: float | None = None
    all_within_cluster: bool | None = None
    cluster_cap: int | None = None
    seed: int | None = None
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    fresh: bool = False
    progress: bool | Listener = True


class BuildRequest(
    _PairRequest,
    _CrawlRequest,
    shared=options,
    settings="gis_builder.settings:BuildSettings",
):
    """The arguments of `build` and `plan_of_build`."""

    repos: str | Path | Iterable[str]
    out: str | Path = "gis-dataset"


@takes(BuildRequest)
def build(request: BuildRequest) -> Built:
    """Crawl repositories, detect duplicates, make pairs, split them, write the dataset and audit it.

    If a build was stopped, the same call continues it.

    Args:
        work: The folder of the crawl and its verdicts. Default: OUT.work.

    Raises:
        ConfigError: A setting, a folder or a token is invalid, or no repository can be crawled.
        DataError: There are no duplicates, or the store is damaged.
        LeakError: The audit found a leak; the dataset is kept for inspection.
        IncompleteCrawlError: Some repositories failed; call it again to continue.
        RemoteError: The server can't be reached, or all repositories failed; call it again to continue.
    """
    from gis_builder.pairing.build_pairs import build as build_dataset

    settings = build_settings(request)
    names = read_repos(request.repos)
    out = path_of("out", request.out)
    work = _work_of(request.work, out)
    with display(request.progress) as show:
        open_github = opener(request, settings, show)
        return build_dataset(
            names, out, work, settings, open_github, show, fresh=request.fresh
        )


class PlanRequest(
    GitHubRequest, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments of `plan`."""

    repos: str | Path | Iterable[str]
    _: KW_ONLY
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    progress: bool | Listener = True


@takes(PlanRequest)
def plan(request: PlanRequest) -> Plan:
    """Estimate the cost of a crawl: points of GitHub's rate limit, requests and hours.

    Nothing is written. The estimate itself costs one point per 25 repositories.

    Raises:
        ConfigError: A setting or a token is invalid, or no repository can be crawled.
        RemoteError: The server can't be reached.
    """
    return _plan_crawl(request)


@takes(BuildRequest, same_texts=build)
def plan_of_build(request: BuildRequest) -> Plan:
    """The plan of a build's crawl; options that the build would refuse are refused already."""
    return _plan_crawl(request)


def _plan_crawl(request: PlanRequest | BuildRequest) -> Plan:
    from gis_builder.crawling.crawl import plan as plan_crawl

    settings = build_settings(request)
    names = read_repos(request.repos)
    with display(request.progress) as show:
        return plan_crawl(names, settings, opener(request, settings, show))


class PairRequest(
    _PairRequest, shared=options, settings="gis_builder.settings:BuildSettings"
):
    """The arguments of `pair`."""

    work: str | Path
    out: str | Path = "gis-dataset"


@takes(PairRequest)
def pair(request: PairRequest) -> Built:
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

    settings = build_settings(request)
    out = path_of("out", request.out)
    work = path_of("work", request.work)
    with display(request.progress) as show:
        return pair_dataset(out, work, settings, show, fresh=request.fresh)


class ArchiveRequest(
    Request, shared=options, settings="gis_builder.settings:ArchiveSettings"
):
    """The arguments of `archive` and `read_hours`."""

    hours: str = parameter(metavar="A..B")
    source: str | Path = parameter(short="-s", metavar="DIR")
    out: str | Path = "gis-archive"
    _: KW_ONLY
    work: str | Path | None = None
    exclude: str | Path | None = parameter(default=None, metavar="FILE")
    workers: int | None = parameter(default=None, metavar="N", panel=_TASKS)
    engine: str = parameter(default="local", metavar="NAME", panel=_TASKS)
    address: str | None = parameter(default=None, metavar="HOST:PORT", panel=_TASKS)
    seed: int | None = None
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    fresh: bool = False
    progress: bool | Listener = True


@takes(ArchiveRequest)
def archive(request: ArchiveRequest) -> ArchiveBuilt:
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

    Raises:
        ConfigError: A setting or a folder is invalid.
        DataError: All hours are missing, or they contain no pair.
        LeakError: The audit found a leak; the dataset is kept for inspection.
    """
    from gis_builder.gh_archive.archive_run import build_archive

    job = _archive_job(request)
    out = path_of("out", request.out)
    with display(request.progress) as show, _runner(request) as runner:
        return build_archive(job, out, runner, show, fresh=request.fresh)


@takes(ArchiveRequest, same_texts=archive)
def read_hours(request: ArchiveRequest) -> HoursRead:
    """Only read the hours of an archive into `work`; their files can then be deleted.

    `archive` continues from there. Only `hours`, `source`, `work` and the tasks' options matter here.
    """
    from gis_builder.gh_archive.archive_run import read_hours as read

    job = _archive_job(request)
    with display(request.progress) as show, _runner(request) as runner:
        return read(job, runner, show)


def _archive_job(request: ArchiveRequest) -> Job:
    from gis_builder.gh_archive.archive_run import Job
    from gis_builder.gh_archive.extract import hours_between
    from gis_builder.gh_archive.judge_threads import read_exclusions
    from gis_builder.settings import ArchiveSettings
    from pairkit.base.settings import argument, load_settings

    excluded: Sequence[str] = ()
    if request.exclude is not None:
        excluded = read_exclusions(path_of("exclude", request.exclude))
    settings = load_settings(
        ArchiveSettings,
        request.flags(),
        config=request.config,
        settings=request.settings,
    )
    return Job(
        hours=hours_between(argument("hours", request.hours, str)),
        source=path_of("source", request.source),
        work=_work_of(request.work, path_of("out", request.out)),
        settings=settings,
        excluded=excluded,
    )


def _runner(request: ArchiveRequest) -> Runner:
    from pydantic import Field

    from gis_builder.gh_archive.runners import choose_runner
    from pairkit.base.settings import argument

    return choose_runner(
        argument("engine", request.engine, Literal["local", "ray"]),
        argument("workers", request.workers, Annotated[int, Field(ge=1)] | None),
        argument("address", request.address, str | None),
    )


def _work_of(work: str | Path | None, out: Path) -> Path:
    """The working folder, by default beside the dataset."""
    from pairkit.base.system.folders import work_beside

    return work_beside(out) if work is None else path_of("work", work)


@options()
def demo(
    out: str | Path = "demo", *, fresh: bool = False, progress: bool | Listener = True
) -> Built:
    """Build a dataset from the sample trackers: no token, no network."""
    work = _work_of(None, path_of("out", out))
    sample = next((folder for folder in _SAMPLES if folder.is_dir()), None)
    if sample is None:
        raise ConfigError(
            "the sample trackers are missing from this installation; reinstall aoe-toolkit"
        )
    import_tracker(sample, work, progress=progress)
    detect(work, progress=progress)
    return pair(work, out, fresh=fresh, progress=progress)
