"""Detection over a store: a thread is judged again only if an input of its verdict changed."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec import Struct

from gis_builder.crawl_progress import RunDisplay
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import Explanation, explained
from gis_builder.detection.issue_references import github_links
from gis_builder.detection.statements import Rules
from gis_builder.detection.verdict_files import (
    KEPT_FILE,
    CachedVerdict,
    VerdictCache,
    parse_ref,
)
from gis_builder.settings import DetectSettings
from gis_builder.store import (
    IssueRef,
    Kind,
    RepoRow,
    Store,
    StoredThread,
    Thread,
    full_names,
)
from pairkit import __version__
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.folders import differing
from pairkit.dataset.table_files import write_parquet

_LOG = logging.getLogger(__name__)

_RECORD = "verdicts"


@cache
def code_digest() -> str:
    """A hash of the version and the code of this package, for results that are kept between runs."""
    digest = hashlib.sha256(__version__.encode())
    for file in sorted(Path(__file__).parents[1].rglob("*")):
        if file.suffix in (".py", ".toml"):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


class _Inputs(Struct):
    """The inputs of a detection; empty while it writes its verdicts."""

    store: str = ""
    settings: dict[str, Any] = {}
    repositories: list[str] = []


def detect(
    store: Store,
    path: Path,
    rows: Sequence[RepoRow],
    settings: DetectSettings,
    show: RunDisplay,
) -> int:
    """Judge these repositories and write their verdicts to `path`; the store gets the inputs.

    Returns the number of threads that were judged anew.
    """
    detector = Detector(store, settings)
    for _ in detector.judge_all(full_names(rows), show):
        pass
    # If it is killed, verdicts and inputs of different runs aren't taken together.
    store.set_meta(_RECORD, "{}")
    write_parquet(path, detector.keep(), private=True)  # verdicts quote comments
    names = [row.name for row in rows]
    inputs = _Inputs(store.content_hash(), settings.model_dump(mode="json"), names)
    store.set_meta(_RECORD, msgspec.json.encode(inputs).decode())
    return detector.judged_anew


def judged_rows(store: Store, settings: DetectSettings) -> list[RepoRow]:
    """The repositories of the last detection; raises DataError if its crawl or settings were others."""
    last = store.meta_json(_RECORD, _Inputs)
    if not last:
        fault = "there are no verdicts yet; run `gis detect` first"
    elif last.store != store.content_hash():
        fault = "the verdicts are older than the crawl; run `gis detect` again"
    elif changes := differing(last.settings, settings.model_dump(mode="json")):
        remedy = "use the same, or run `gis detect` again"
        fault = f"judged with other settings: {'; '.join(changes)}; {remedy}"
    else:
        return [row for row in store.repos() if row.name in last.repositories]
    raise DataError(fault, path=store.path)


def parse_issue(name: str) -> IssueRef:
    """Parse the issue `owner/name#number`; raises ConfigError for other texts."""
    if not re.fullmatch(r"[^#]*/[^#]*#[0-9]{1,9}", name):
        raise ConfigError(
            f"{name}: expected an issue as owner/name#number, such as rust-lang/rust#8051"
        )
    return parse_ref(name)


def explain_thread(store: Store, name: str, settings: DetectSettings) -> Explanation:
    """Explain the verdict on one thread."""
    ref = parse_issue(name)
    thread = store.thread(ref)
    if thread is None or thread.issue.is_pull:
        raise ConfigError(f"{name}: not among the issues of {store.path}")
    detector = Detector(store, settings)
    return explained(
        github_links(thread, store.site),
        detector.kind_of,
        detector.rules(thread.issue.repo),
        is_complete=store.is_complete(ref),
    )


class Detector:
    """Judges a store's threads; reuses each verdict whose inputs are unchanged."""

    def __init__(self, store: Store, settings: DetectSettings) -> None:
        self._store = store
        self._settings = settings
        self._site = store.site
        self._tickets = store.tickets()
        self._newest: dict[str, int] = {}
        self._names: dict[str, set[str]] = {}  # also former ones
        self._imported: set[str] = set()
        for row in store.all_repos():
            repo = row.full_name
            # The row of a former name may be older.
            self._newest[repo] = max(row.max_number, self._newest.get(repo, 0))
            self._names.setdefault(repo, set()).add(row.name)
            if store.tasks(repo, "import"):
                self._imported.add(repo)
        self._cache = VerdictCache(store.path.with_name(KEPT_FILE))
        self._judged: set[str] = set()
        self.judged_anew = 0

    def judge(self, repo: str) -> Iterator[CachedVerdict]:
        """Judge every complete thread of a repository, with one thread in memory at a time."""
        cached = self._cache.of(repo)
        rules_hash = self._rules_hash(repo)
        self._judged.add(repo)
        for stored in self._store.stored_threads(repo):
            yield self._judge(stored, rules_hash, cached.get(stored.ref.number))

    def judge_all(
        self, repos: Sequence[str], show: RunDisplay
    ) -> Iterator[CachedVerdict]:
        """Judge several repositories."""
        total = sum(map(self._store.count_threads, repos))
        judged = chain.from_iterable(map(self.judge, repos))
        return show.counted("detecting duplicates", judged, total)

    def judge_again(self, refs: Iterable[IssueRef]) -> Iterator[CachedVerdict]:
        """Judge some issues again, after the issues that they mention were fetched."""
        for ref in refs:
            if stored := self._store.stored_thread(ref):
                yield self._judge(stored, self._rules_hash(ref.repo), None)

    def keep(self) -> pl.DataFrame:
        """Save all verdicts for later runs and return those of the judged repositories."""
        return self._cache.write(self._judged)

    def unknown(self, judged: CachedVerdict) -> frozenset[IssueRef]:
        """The issues that a verdict depends on and that were not fetched."""
        inputs = {*judged.verdict.targets, *dict(judged.dependencies)}
        return frozenset(ref for ref in inputs if self._store.kind(ref) is Kind.UNKNOWN)

    def _judge(
        self,
        stored: StoredThread,
        rules_hash: bytes,
        cached: CachedVerdict | None,
    ) -> CachedVerdict:
        """Reuse the cached verdict if its inputs are the same, or judge anew; adds it to the cache."""
        input_hash = stored.digest(rules_hash)
        if (
            cached
            and cached.input_hash == input_hash
            and all(self.kind_of(ref) is kind for ref, kind in cached.dependencies)
        ):
            judged = cached
            origin = "reused"
        else:
            thread = github_links(stored.read(), self._site)
            judged = self._judge_anew(thread, input_hash)
            origin = "judged"
        verdict = judged.verdict
        _LOG.info(
            "%s: %s: %s (%s)", verdict.ref, origin, verdict.outcome, verdict.reason
        )
        self._cache.add(judged)
        return judged

    def _judge_anew(self, thread: Thread, input_hash: str) -> CachedVerdict:
        dependencies = {}

        def kind_of(ref: IssueRef) -> Kind:
            dependencies[ref] = self.kind_of(ref)
            return dependencies[ref]

        self.judged_anew += 1
        verdict = decide(thread, kind_of, self.rules(thread.issue.repo))
        return CachedVerdict(verdict, input_hash, tuple(sorted(dependencies.items())))

    def rules(self, repo: str) -> Rules:
        """The rules for one repository, with its former names."""
        return Rules(
            allow_cross_repository=self._settings.allow_cross_repository,
            min_confidence=self._settings.min_confidence,
            # The projects of imported tickets are one tracker.
            one_tracker=frozenset(self._tickets if repo in self._tickets else ()),
            former_names=frozenset(self._names.get(repo, ())) - {repo},
            site=self._site,
        )

    def kind_of(self, ref: IssueRef) -> Kind:
        """The kind of a reference's target; numbers beyond the newest stored issue stay unknown."""
        kind = self._store.kind(ref)
        repo = self._store.full_name(ref.repo)
        if ref.number > self._newest.get(repo, ref.number):
            # It may have been opened after the crawl.
            return Kind.UNKNOWN if kind is Kind.MISSING else kind
        # An imported tracker is complete up to its newest number.
        if kind is Kind.UNKNOWN and repo in self._imported:
            return Kind.MISSING
        return kind

    def _rules_hash(self, repo: str) -> bytes:
        """A hash of the inputs of a verdict other than the thread and the mentioned issues."""
        rules = self.rules(repo)
        names = sorted(rules.former_names | rules.one_tracker)
        settings = self._settings.model_dump(mode="json")
        tickets = sorted(self._tickets.get(repo, {}).values())
        inputs = json.dumps(
            [repo, names, self._site, *tickets, settings, code_digest()]
        )
        return hashlib.sha256(inputs.encode()).digest()
