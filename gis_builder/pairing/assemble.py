"""From a store and its verdicts to a dataset: clusters, texts, positives, splits, negatives, folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gis_builder.crawling.crawl import pool_size
from gis_builder.crawling.github.pool import sample_order
from gis_builder.detection import clusters as find_clusters
from gis_builder.detection.references import find_references
from gis_builder.detection.verdicts import count_verdicts, read_duplicates
from gis_builder.pairing.dataset import drop_counts, reasons_of, write_dropped, write_gis
from gis_builder.pairing.guard import Link
from gis_builder.pairing.negatives import make_negatives
from gis_builder.pairing.positives import make_positives
from gis_builder.pairing.split import split_issues, tie_similar
from gis_builder.pairing.text import render_issues
from gis_builder.progress.display import SILENT, RunDisplay
from gis_builder.settings import BuildSettings, SplitSettings
from gis_builder.store import RepoRow, Store, full_names
from gis_builder.store.crawled import site_of
from gis_builder.store.records import Grounds, Issue, IssueRef, Kind, Thread, Verdict
from pairkit import __version__
from pairkit.app.errors import ConfigError

DROPPED_FILE = "dropped.parquet"
_LOG = logging.getLogger(__name__)


def assemble(
    store: Store,
    rows: Sequence[RepoRow],
    verdicts: Path,
    settings: BuildSettings,
    crawled: Mapping[str, Any],
    out: Path,
    show: RunDisplay = SILENT,
) -> dict[str, Any]:
    """Make the dataset of these repositories and write it to `out`.

    `crawled` is the crawl's own record of its settings. Beside the verdicts goes `dropped.parquet`: every
    issue and pair that was left out, with its reason.
    """
    seed = settings.seed
    duplicates = read_duplicates(verdicts)
    clusters = find_clusters(duplicates)
    members = {ref for cluster in clusters for ref in cluster.members}
    wanted = members | _pool(store, rows, duplicates, settings)
    issues = show.counted("rendering texts", _issues(store, wanted), len(wanted))
    texts = render_issues(issues, clusters, settings.text)
    positives = make_positives(clusters, texts, grounds_of(duplicates), settings.pair, seed)
    _LOG.info(
        "%d duplicates in %d clusters, %d texts (%d left out), %d positives (%d dropped)",
        *(len(duplicates), len(clusters), len(texts.usable), len(texts.rejected)),
        *(len(positives.pairs), len(positives.dropped)),
    )
    ties = tie_similar(texts.usable, settings.pair.similar_at)
    splits = split_issues(
        positives.pairs, clusters, texts.usable, ties, settings.split, settings.pair.ratio, seed
    )
    negatives = make_negatives(
        splits.positives,
        splits.negatives_wanted,
        splits.of,
        splits.group,
        clusters,
        texts.usable,
        _links(store, texts.usable, show),
        settings.pair,
        seed,
    )
    missing = check_missing(negatives.missing, settings.split)
    dropped = [*positives.dropped, *splits.dropped, *negatives.dropped]
    write_dropped(verdicts.with_name(DROPPED_FILE), texts.rejected, dropped)
    return write_gis(
        out,
        splits.positives,
        negatives.pairs,
        texts.usable,
        seed=seed,
        statistics={
            "verdicts": count_verdicts(verdicts),
            "clusters": len(clusters),
            "missing_negatives": missing,
            "negatives_with_a_pool_issue": negatives.with_single,
            **drop_counts(reasons_of(texts.rejected, dropped), texts.removed),
        },
        run=run_record(store, rows, settings, crawled),
        site=site_of(store),
    )


def check_missing(negatives: Mapping[str, int], settings: SplitSettings) -> dict[str, int]:
    """How many negatives each split lacks of those wanted, where it lacks any."""
    missing = {split: count for split, count in negatives.items() if count}
    if missing and settings.exact:
        raise ConfigError(
            f"split: {sum(missing.values())} negatives can't be drawn ({missing}); ask for fewer pairs, a "
            "smaller ratio, or more issues (such as pool.per_positive=3)"
        )
    return missing


def run_record(
    store: Store, rows: Iterable[RepoRow], settings: BuildSettings, crawled: Mapping[str, Any]
) -> dict[str, Any]:
    """What made a dataset: version, settings and data, and nothing that differs from one run to the next."""
    return {
        "made_by": f"gis (aoe-toolkit {__version__})",
        "settings": settings_record(settings, crawled),
        "repositories": {row.name: {"outcome": row.outcome, "full_name": row.full_name} for row in rows},
        "store_sha256": store.content_hash(),
    }


def settings_record(settings: BuildSettings, crawled: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that bear on what a dataset holds, those of its crawl as the crawl recorded them."""
    return settings.model_dump(mode="json", exclude={"crawl"}) | {"crawl": dict(crawled)}


def _pool(
    store: Store, rows: Sequence[RepoRow], duplicates: Iterable[Verdict], settings: BuildSettings
) -> set[IssueRef]:
    """The issues that only serve in negatives: the same sample that the crawl fetched."""
    counts = Counter(verdict.ref.repo for verdict in duplicates)
    by_name = {row.full_name: row for row in rows}
    pool: set[IssueRef] = set()
    for repo in full_names(rows):
        refs = (IssueRef(repo, number) for number in sample_order(store, by_name[repo], settings.seed))
        issues = (ref for ref in refs if store.kind(ref) is Kind.ISSUE)
        pool.update(islice(issues, pool_size(counts[repo], settings.pool)))
    return pool


def _issues(store: Store, wanted: Collection[IssueRef]) -> Iterator[Issue]:
    """The wanted issues of every repository, one at a time in memory."""
    for repo in sorted({ref.repo for ref in wanted}):
        yield from (issue for issue in store.issues(repo) if issue.ref in wanted)


def grounds_of(duplicates: Iterable[Verdict]) -> dict[tuple[IssueRef, IssueRef], Grounds]:
    """What each (duplicate, target) rests on; of the statements the last that names the target, or of all."""
    found: dict[tuple[IssueRef, IssueRef], Grounds] = {}
    for verdict in duplicates:
        for target in verdict.targets:
            naming = [evidence for evidence in verdict.evidence if target in evidence.targets]
            last = next(reversed(naming or verdict.evidence), None)
            found[verdict.ref, target] = Grounds(verdict.relation, verdict.reason, verdict.confidence, last)
    return found


def _links(store: Store, usable: Mapping[IssueRef, object], show: RunDisplay) -> set[Link]:
    """Pairs of usable issues of which one mentions the other anywhere in its thread."""
    links: set[Link] = set()
    repos = sorted({ref.repo for ref in usable})
    threads = ((repo, stored) for repo in repos for stored in store.stored_threads(repo, only_complete=False))
    for repo, stored in show.counted("finding mentions", threads, sum(map(store.count_threads, repos))):
        ref = IssueRef(repo, stored.number)
        if ref in usable:
            links.update(frozenset((ref, other)) for other in mentions_of(stored.read()) if other in usable)
    return links


def mentions_of(thread: Thread) -> set[IssueRef]:
    """Every issue that a thread's texts name."""
    texts = (thread.issue.title, thread.issue.body, *(comment.body for comment in thread.comments))
    repo = thread.issue.repo
    return {reference.ref for text in texts for reference in find_references(text, repo)}
