"""Datasets: of a crawl, of an archive, and of the sample trackers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gis_builder.api.common_options import (
    display,
    merged_settings,
    opener,
    options,
    path_of,
    read_repos,
)
from gis_builder.api.crawls import detect, import_tracker
from pairkit.base.cli.options import Option, same_arguments, setting_keys
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from gis_builder.crawling.crawl_plan import Plan
    from gis_builder.gh_archive.archive_run import Job
    from gis_builder.gh_archive.runners import Runner
    from gis_builder.pairing.pairing_results import ArchiveBuilt, Built, HoursRead
    from gis_builder.settings.negative_strategies import Rank
    from pairkit.base.cli.progress import Listener

_TASKS = "Tasks"
_PACKAGE = Path(__file__).resolve().parents[1]
_SAMPLES = (
    _PACKAGE / "data" / "sample",
    _PACKAGE.parent / "data" / "sample",
)  # installed, source tree


@options("gis_builder.settings:BuildSettings")
def build(
    repos: str | Path | Iterable[str],
    out: str | Path = "gis-dataset",
    *,
    work: str | Path | None = None,
    strategy: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    split_sizes: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    min_same_probability: float | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    cluster_cap: int | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
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
        RemoteError: The server can't be reached, or all repositories failed; call it again to continue.
    """
    from gis_builder.pairing.build_pairs import build as build_dataset

    given: dict[str, Any] = {"strategy": strategy, "api_url": api_url, "split_sizes": split_sizes}
    given |= {"relations": relations, "negatives": negatives, "match": match, "ratio": ratio}
    given |= {"min_same_probability": min_same_probability}
    given |= {"all_within_cluster": all_within_cluster, "cluster_cap": cluster_cap, "seed": seed}
    merged = merged_settings(build, given, config, settings)
    names = read_repos(repos)
    folder = path_of("out", out)
    with display(progress) as show:
        open_github = opener(merged, token, token_file, show)
        return build_dataset(
            names, folder, _work_of(work, folder), merged, open_github, show, fresh=fresh
        )


@options("gis_builder.settings:BuildSettings")
def plan(
    repos: str | Path | Iterable[str],
    *,
    strategy: str | None = None,
    api_url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    progress: bool | Listener = True,
) -> Plan:
    """Estimate the cost of a crawl: points of GitHub's rate limit, requests and hours.

    Nothing is written. The estimate itself costs one point per 25 repositories.

    Raises:
        ConfigError: A setting or a token is invalid, or no repository can be crawled.
        RemoteError: The server can't be reached.
    """
    from gis_builder.crawling.crawl_plan import plan as plan_crawl

    merged = merged_settings(plan, {"strategy": strategy, "api_url": api_url}, config, settings)
    names = read_repos(repos)
    with display(progress) as show:
        return plan_crawl(names, merged, opener(merged, token, token_file, show))


@same_arguments(build)
def plan_of_build(arguments: dict[str, Any]) -> Plan:
    """The plan of a build's crawl; options that the build would refuse are refused already."""
    merged_settings(build, arguments, arguments["config"], arguments["settings"])
    return plan(**{name: arguments[name] for name in signature(plan).parameters})


@options("gis_builder.settings:BuildSettings")
def pair(
    work: str | Path,
    out: str | Path = "gis-dataset",
    *,
    split_sizes: str | Sequence[float] | None = None,
    relations: str | Sequence[str] | None = None,
    min_same_probability: float | None = None,
    negatives: str | Rank | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_within_cluster: bool | None = None,
    cluster_cap: int | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
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
    }
    given |= {"match": match, "ratio": ratio, "all_within_cluster": all_within_cluster}
    given |= {"min_same_probability": min_same_probability}
    given |= {"cluster_cap": cluster_cap, "seed": seed}
    merged = merged_settings(pair, given, config, settings)
    with display(progress) as show:
        return pair_dataset(path_of("out", out), path_of("work", work), merged, show, fresh=fresh)


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
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> ArchiveBuilt:
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

    arguments: dict[str, Any] = {"hours": hours, "source": source, "out": out, "work": work}
    arguments |= {"exclude": exclude, "seed": seed, "config": config, "settings": settings}
    arguments |= {"workers": workers, "engine": engine, "address": address}
    job, runner = _archive_inputs(arguments)
    with display(progress) as show, runner:
        return build_archive(job, path_of("out", out), runner, show, fresh=fresh)


@same_arguments(archive)
def read_hours(arguments: dict[str, Any]) -> HoursRead:
    """Only read the hours of an archive into `work`; their files can then be deleted.

    `archive` continues from there. Only `hours`, `source`, `work` and the tasks' options matter here.
    """
    from gis_builder.gh_archive.archive_run import read_hours as read

    job, runner = _archive_inputs(arguments)
    with display(arguments["progress"]) as show, runner:
        return read(job, runner, show)


def _archive_inputs(arguments: Mapping[str, Any]) -> tuple[Job, Runner]:
    from typing import Literal

    from pydantic import Field

    from gis_builder.gh_archive.archive_run import Job
    from gis_builder.gh_archive.hours import hours_between
    from gis_builder.gh_archive.judge_threads import read_exclusions
    from gis_builder.gh_archive.runners import choose_runner
    from gis_builder.settings import ArchiveSettings
    from pairkit.base.settings import argument, merge

    layers = {name: arguments[name] for name in ("config", "settings")}
    exclude = arguments["exclude"]
    job = Job(
        hours_between(argument("hours", arguments["hours"], str)),
        path_of("source", arguments["source"]),
        _work_of(arguments["work"], path_of("out", arguments["out"])),
        merge(ArchiveSettings, setting_keys(archive), {"seed": arguments["seed"]}, **layers),
        () if exclude is None else read_exclusions(path_of("exclude", exclude)),
    )
    return job, choose_runner(
        argument("engine", arguments["engine"], Literal["local", "ray"]),
        argument("workers", arguments["workers"], Annotated[int, Field(ge=1)] | None),
        argument("address", arguments["address"], str | None),
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
