"""Build a dataset from repositories: crawl, detect, make pairs, audit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import polars as pl

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.crawl import crawl, crawl_record, negative_sample_size
from gis_builder.crawling.github import GitHub
from gis_builder.crawling.github.fetch import sample_order
from gis_builder.crawling.status import Crawled, IncompleteCrawlError, read_status
from gis_builder.detection.detector import detect, judged_rows
from gis_builder.detection.issue_references import find_references, github_links
from gis_builder.detection.verdict_files import FILE as VERDICTS_FILE
from gis_builder.detection.verdict_files import count_verdicts, read_duplicates
from gis_builder.pairing.negatives import Link, make_negatives
from gis_builder.pairing.pair_folder import (
    drop_counts,
    dropped_frame,
    reasons_of,
    write_gis,
)
from gis_builder.pairing.pairing_results import DROPPED_FILE, Built
from gis_builder.pairing.positives import find_clusters, make_positives
from gis_builder.pairing.split import group_near_duplicates, split_issues
from gis_builder.pairing.text import (
    RenderedTexts,
    has_word,
    render,
    render_issues,
    template_lines,
)
from gis_builder.settings import BuildSettings, SplitSettings, TextSettings
from gis_builder.store import (
    Grounds,
    Issue,
    IssueRef,
    IssueRefs,
    Kind,
    RepoOutcome,
    RepoRow,
    Store,
    Thread,
    TicketSite,
    Usage,
    Verdict,
    full_names,
)
from gis_builder.store.store import locked_store
from pairkit import AuditReport, __version__, audit
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import comparable
from pairkit.base.system.folders import check_apart, check_same_run, existing_run
from pairkit.dataset.table_files import save_table, write_parquet

# The columns of rendered texts that are written only for tickets of other trackers than GitHub.
_TICKET_COLUMNS = ("key", "priority")


def build(
    repos: Sequence[str],
    out: Path,
    work: Path,
    settings: BuildSettings,
    open_github: Callable[[Store], GitHub],
    show: RunDisplay,
    *,
    fresh: bool = False,
) -> Built:
    """Build the dataset of these repositories; if it was interrupted, a second call continues."""
    start = time.monotonic()
    check_apart(out, work)
    record = settings_record(settings, crawl_record(settings))
    check_out(out, repos, record, fresh=fresh)
    with locked_store(work) as store:
        show.say("crawling")
        with open_github(store) as github:
            rows = crawl(github, store, repos, settings, show)
        if any(row.outcome is RepoOutcome.FAILED for row in rows):
            raise IncompleteCrawlError(Crawled(work, rows, read_status(store)))
        show.say("detecting duplicates")
        detect(store, work / VERDICTS_FILE, rows, settings.detect, show)
        show.say("making pairs")
        return _built(store, rows, settings, out, show, start)


def pair(
    out: Path,
    work: Path,
    settings: BuildSettings,
    show: RunDisplay,
    *,
    fresh: bool = False,
) -> Built:
    """Make a dataset from the crawl in `work` without requests."""
    start = time.monotonic()
    check_apart(out, work)
    with locked_store(work, create=False) as store:
        store.check_issues()
        rows = judged_rows(store, settings.detect)
        record = settings_record(settings, store.crawl_record())
        check_out(out, [row.name for row in rows], record, fresh=fresh)
        return _built(store, rows, settings, out, show, start)


def _built(
    store: Store,
    rows: Sequence[RepoRow],
    settings: BuildSettings,
    out: Path,
    show: RunDisplay,
    start: float,
) -> Built:
    """Make the dataset and audit it; `start` is the monotonic time at the start of the command."""
    statistics = _assemble(store, rows, settings, out, show)
    show.say("auditing")
    return Built(
        out=out,
        work=store.path.parent,
        statistics=statistics,
        audit=checked(out),
        seconds=time.monotonic() - start,
        repositories=rows,
        usage=sum(store.usage().values(), Usage()),
    )


def check_out(
    out: Path,
    repos: Sequence[str],
    settings: Mapping[str, object],
    *,
    fresh: bool,
) -> None:
    """Refuse an output folder that contains anything but a dataset of the same repositories and settings."""
    run = existing_run(out, "gis")
    if run is None or fresh:
        return
    saved = {
        "settings": run.get("settings"),
        "repositories": sorted(run.get("repositories", ())),
    }
    current = {"settings": settings, "repositories": sorted(set(repos))}
    check_same_run(out, saved, current)


def checked(out: Path) -> AuditReport:
    """Audit the dataset and raise an error if it has leaks."""
    report = audit(out)
    report.check()
    return report


def _assemble(
    store: Store,
    rows: Sequence[RepoRow],
    settings: BuildSettings,
    out: Path,
    show: RunDisplay,
) -> dict[str, object]:
    """Make pairs from the verdicts on these repositories, write the dataset to `out`, and count."""
    seed = settings.seed
    pairing = settings.pair
    verdicts = store.path.with_name(VERDICTS_FILE)
    duplicates = [
        _with_present_names(verdict, store) for verdict in read_duplicates(verdicts)
    ]
    clusters = find_clusters(duplicates)
    members = {ref for cluster in clusters for ref in cluster.members}
    refs = members | _negative_sample(store, rows, duplicates, settings)
    rendered = _render_all(store, refs, settings.text, show)
    texts = rendered.usable
    positives = make_positives(
        clusters, rendered, grounds_of(duplicates), pairing, seed
    )
    near_duplicates = group_near_duplicates(texts, pairing.similar_at)
    splits = split_issues(positives.pairs, clusters, texts, near_duplicates, settings)
    links = _linked_pairs(store, texts, show)
    negatives = make_negatives(splits, clusters, texts, links, pairing, seed)
    missing = check_missing(negatives.missing, settings.split)

    dropped = [*positives.dropped, *splits.dropped, *negatives.dropped]
    reasons = reasons_of(rendered.rejected, dropped)
    dropped_rows = dropped_frame(rendered.rejected, dropped)
    write_parquet(verdicts.with_name(DROPPED_FILE), dropped_rows, private=True)
    return write_gis(
        out,
        splits.positives,
        negatives.pairs,
        texts,
        seed=seed,
        statistics={
            "verdicts": count_verdicts(verdicts),
            "clusters": len(clusters),
            "missing_negatives": missing,
            "negatives_with_a_pool_issue": negatives.with_single,
            **drop_counts(reasons, rendered.removed),
        },
        run=_run_record(store, rows, settings),
        site=store.site,
    )


def _with_present_names(verdict: Verdict, store: Store) -> Verdict:
    """The verdict with the present names of the repositories of all targets: people write former ones."""

    def present(refs: IssueRefs) -> IssueRefs:
        return tuple(IssueRef(store.full_name(repo), number) for repo, number in refs)

    evidence = tuple(
        replace(item, targets=present(item.targets)) for item in verdict.evidence
    )
    return replace(verdict, targets=present(verdict.targets), evidence=evidence)


def grounds_of(
    duplicates: Iterable[Verdict],
) -> dict[tuple[IssueRef, IssueRef], Grounds]:
    """The grounds of each (duplicate, target), with the last evidence that names the target, if any does."""
    grounds = {}
    for verdict in duplicates:
        for target in verdict.targets:
            naming = [item for item in verdict.evidence if target in item.targets]
            evidence = naming or verdict.evidence
            grounds[verdict.ref, target] = Grounds(
                relation=verdict.relation,
                reason=verdict.reason,
                confidence=verdict.confidence,
                evidence=evidence[-1] if evidence else None,
            )
    return grounds


def _negative_sample(
    store: Store,
    rows: Sequence[RepoRow],
    duplicates: Iterable[Verdict],
    settings: BuildSettings,
) -> set[IssueRef]:
    """The issues used only in negatives: the sample that the crawl fetched."""
    counts = Counter(repo for verdict in duplicates for repo in verdict.repos)
    by_name = {row.full_name: row for row in rows}
    sample = set[IssueRef]()
    for repo in full_names(rows):
        order = sample_order(store, by_name[repo], settings.seed)
        refs = (IssueRef(repo, number) for number in order)
        issues = (ref for ref in refs if store.kind(ref) is Kind.ISSUE)
        size = negative_sample_size(counts[repo], settings.pool)
        sample.update(islice(issues, size))
    return sample


def _render_all(
    store: Store,
    refs: Collection[IssueRef],
    settings: TextSettings,
    show: RunDisplay,
) -> RenderedTexts:
    """The texts of these issues, which are read one at a time."""
    repos = sorted({ref.repo for ref in refs})
    templates = {repo: template_lines(store.issues(repo)) for repo in repos}
    issues = chain.from_iterable(map(store.issues, repos))
    wanted = (issue for issue in issues if issue.ref in refs)
    shown = show.counted("rendering texts", wanted, len(refs))
    return render_issues(shown, templates, settings)


def _linked_pairs(
    store: Store, usable: Mapping[IssueRef, object], show: RunDisplay
) -> set[Link]:
    """Pairs of usable issues of which one mentions the other in its thread."""
    links = set[Link]()
    site = store.site
    repos = sorted({ref.repo for ref in usable})
    total = sum(map(store.count_threads, repos))
    threads = chain.from_iterable(
        store.stored_threads(repo, only_complete=False) for repo in repos
    )
    for stored in show.counted("finding mentions", threads, total):
        if stored.ref not in usable:
            continue
        thread = github_links(stored.read(), site)
        for target in mentions_of(thread, store.full_name).intersection(usable):
            links.add(frozenset((stored.ref, target)))
    return links


def mentions_of(thread: Thread, full_name: Callable[[str], str]) -> set[IssueRef]:
    """Every issue that a thread mentions, with the present name of its repository."""
    issue = thread.issue
    refs = set[IssueRef]()
    for text in (issue.title, issue.body, *(each.body for each in thread.comments)):
        found = find_references(comparable(text), issue.repo)
        refs.update(reference.ref for reference in found)
    return {IssueRef(full_name(repo), number) for repo, number in refs}


def check_missing(
    negatives: Mapping[str, int], settings: SplitSettings
) -> dict[str, int]:
    """The number of missing negatives of each split that lacks some; raises ConfigError for exact sizes."""
    missing = {split: count for split, count in negatives.items() if count}
    if missing and settings.exact:
        raise ConfigError(
            f"split: there are not enough issues for {sum(missing.values())} negatives ({missing}); request "
            "fewer pairs, a smaller ratio, or more issues (such as pool.per_positive=3)"
        )
    return missing


def _run_record(
    store: Store, rows: Iterable[RepoRow], settings: BuildSettings
) -> dict[str, object]:
    """The content of run.json: version, settings and data, but nothing that differs between equal runs."""
    return {
        "made_by": f"gis (aoe-toolkit {__version__})",
        "settings": settings_record(settings, store.crawl_record()),
        "repositories": {
            row.name: {"outcome": row.outcome, "full_name": row.full_name}
            for row in rows
        },
        "store_sha256": store.content_hash(),
    }


def settings_record(
    settings: BuildSettings, crawled: Mapping[str, object]
) -> dict[str, object]:
    """The settings that decide a dataset's content; those of the crawl are its own record."""
    return settings.model_dump(mode="json", exclude={"crawl"}) | {
        "crawl": dict(crawled)
    }


def render_store(
    store: Store,
    out: Path,
    show: RunDisplay,
    *,
    fresh: bool,
) -> Counter[str]:
    """Render all issues, including short ones, as in a dataset, and write them to a table."""
    store.check_issues()
    rows = []
    counts = Counter[str]()
    repositories = store.repos()
    site = store.site
    issue_counts = {row.full_name: row.issue_count for row in repositories}
    for repo in full_names(repositories):
        issues = list(store.issues(repo))
        total = issue_counts[repo]
        if len(issues) < total:
            show.say(
                f"{repo}: {len(issues):,} of its {total:,} issues were fetched; the strategy all"
                " fetches all"
            )
        template = template_lines(issues)
        for issue in show.counted("rendering texts", issues, len(issues)):
            text = render(issue, template=template).text
            if not has_word(text):
                counts["text_empty"] += 1
                continue
            counts["written"] += 1
            rows.append(_text_row(issue, text, site))
    if not rows:
        raise DataError(
            "no issue has a text; import or crawl other issues", path=store.path
        )
    schema = dict.fromkeys(rows[0], pl.String()) | {"number": pl.Int64()}
    frame = pl.DataFrame(rows, schema=schema)
    if not isinstance(site, TicketSite):
        frame = frame.drop(_TICKET_COLUMNS)
    save_table(out, frame, fresh=fresh)
    return counts


def _text_row(issue: Issue, text: str, site: str) -> dict[str, str | int]:
    """The row of an issue in a table of texts."""
    ref = issue.ref
    key = str(ref)
    priority = ""
    if isinstance(site, TicketSite) and ref in site.rows:
        key, ticket = site.rows[ref]
        priority = ticket.priority
    return {
        "id": str(ref),
        "key": key,
        "repo": ref.repo,
        "number": ref.number,
        "url": ref.page(site),
        "text": text,
        "created_at": issue.created_at,
        "state": issue.state,
        "labels": ", ".join(issue.labels),
        "priority": priority,
    }
