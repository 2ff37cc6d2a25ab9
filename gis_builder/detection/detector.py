"""Detection over a store: a thread is judged again only if the thread or what its verdict rests on changed.

`verdicts.parquet` has the verdicts of the last `gis detect`. `kept.parquet` has all that were made, with the
digests of what they rest on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from msgspec.json import Decoder

from gis_builder.detection.claim_tracker import KindOf, Rules
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explain
from gis_builder.progress import SILENT, RunDisplay
from gis_builder.settings import DetectSettings
from gis_builder.store import RepoRow, Store, StoredThread, full_names
from gis_builder.store.decoding import Node
from gis_builder.store.records import Evidence, IssueRef, Kind, Relation, Thread, Verdict, VerdictOutcome
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.parquet import read_parquet, write_parquet

_LOG = logging.getLogger(__name__)

_RECORD = "verdicts"
CODE = ("store/records.py", "detection")  # what a verdict is made by
FILE = "verdicts.parquet"
KEPT_FILE = "kept.parquet"
_CHUNK = 4096

_EVIDENCE = pl.Struct(
    {
        "kind": pl.String,
        "url": pl.String,
        "who": pl.String,
        "when": pl.String,
        "targets": pl.List(pl.String),
        "said": pl.String,
    }
)
_VERDICT: dict[str, Any] = {
    "repo": pl.String,
    "number": pl.Int64,
    "verdict": pl.String,
    "targets": pl.List(pl.Int64),  # in the same repository
    "targets_elsewhere": pl.List(pl.String),  # owner/name#number
    "confidence": pl.Float64,
    "reason": pl.String,
    "evidence": pl.List(_EVIDENCE),
    "relation": pl.String,  # null where the issue is no duplicate
}
_BASIS: dict[str, Any] = {
    "digest": pl.String,  # of the thread, the settings and the detector
    "asked": pl.List(pl.Struct({"issue": pl.String, "kind": pl.String})),
}


@cache
def code_digest(*parts: str) -> str:
    """A hash of modules (`store/records.py`) and folders (`detection`) of this package."""
    package = files("gis_builder")
    found = sorted((name, text) for part in parts for name, text in _sources(package / part))
    return hashlib.sha256(b"".join(name.encode() + text for name, text in found)).hexdigest()


def _sources(part: Traversable) -> Iterator[tuple[str, bytes]]:
    for source in part.iterdir() if part.is_dir() else (part,):
        if source.name.endswith(".py"):
            yield source.name, source.read_bytes()


class _Basis(Node, frozen=True):
    """What the verdicts of the last detection rest on."""

    store: str
    settings: Any
    repositories: list[str]


_DECODER = Decoder(_Basis)


def detect(
    store: Store, path: Path, rows: Sequence[RepoRow], settings: DetectSettings, show: RunDisplay = SILENT
) -> int:
    """Judge these repositories and write the verdicts; the store notes what they rest on."""
    detector = Detector(store, settings)
    for _ in detector.judge_all(full_names(rows), show):
        pass
    write_parquet(path, detector.keep(), private=True)  # they quote comments
    basis = _basis(store, settings) | {"repositories": [row.name for row in rows]}
    store.set_meta(_RECORD, json.dumps(basis))
    return detector.judged_anew


def judged_rows(store: Store, settings: DetectSettings) -> list[RepoRow]:
    """The repositories that were judged last."""
    noted = store.meta_json(_RECORD, _DECODER)
    if not noted:
        raise DataError("nothing was judged yet; run `gis detect` first", path=store.path)
    now = _basis(store, settings)
    if noted.store != now["store"]:
        raise DataError("the verdicts are older than the crawl; run `gis detect` again", path=store.path)
    if noted.settings != now["settings"]:
        words = f"judged with other settings ({noted.settings}); give the same, or run `gis detect` again"
        raise DataError(words, path=store.path)
    return [row for row in store.repos() if row.name in noted.repositories]


def explain_thread(store: Store, name: str, settings: DetectSettings) -> tuple[Verdict, str]:
    """One thread's verdict, and in words its evidence in order of time and what each piece counts for."""
    repo, _, number = name.rpartition("#")
    if "/" not in repo or not re.fullmatch(r"[0-9]{1,9}", number):
        raise ConfigError(f"issue = {name}: expected owner/name#number, such as rust-lang/rust#8051")
    thread = store.thread(IssueRef(repo, int(number)))
    if thread is None:
        raise ConfigError(f"issue = {name}: not among the issues of {store.path}")
    detector = Detector(store, settings)
    verdict = detector.decide(thread, detector.kind_of)
    return verdict, explain(thread, verdict, detector.kind_of, detector.rules(thread.issue.repo))


def _basis(store: Store, settings: DetectSettings) -> dict[str, Any]:
    return {"store": store.content_hash(), "settings": settings.model_dump(mode="json")}


class Detector:
    """Judges a store's threads; a verdict is kept while thread, settings, code and answers are the same."""

    def __init__(self, store: Store, settings: DetectSettings) -> None:
        rows = [row for row in store.all_repos() if row.full_name]
        self._store, self._settings, self._site = store, settings, store.site
        self._tickets = store.tickets()
        self._newest = {row.full_name: row.max_number for row in rows}
        self._imported = {row.full_name for row in rows if store.tasks(row.full_name, "import", done=True)}
        self._names: dict[str, set[str]] = {}
        for row in rows:
            self._names.setdefault(row.full_name, set()).add(row.name)
        self._kept = KeptVerdicts(store.path.with_name(KEPT_FILE))
        self._judged: set[str] = set()
        self.judged_anew = 0

    def judge(self, repo: str) -> Iterator[KeptVerdict]:
        """Judge every whole thread of a repository, one at a time in memory."""
        known, basis = self._kept.of(repo), self._rules_digest(repo)
        self._judged.add(repo)
        for stored in self._store.stored_threads(repo):
            yield self._judge(stored, basis, known.get(stored.number))

    def judge_all(self, repos: Sequence[str], show: RunDisplay = SILENT) -> Iterator[KeptVerdict]:
        """The same for several repositories."""
        total = sum(map(self._store.count_threads, repos))
        return show.counted("detecting duplicates", chain.from_iterable(map(self.judge, repos)), total)

    def judge_again(self, refs: Iterable[IssueRef]) -> Iterator[KeptVerdict]:
        """Judge some issues again, since more is known of what they rest on."""
        for ref in refs:
            stored = self._store.stored_thread(ref)
            if stored is not None:
                yield self._judge(stored, self._rules_digest(ref.repo), None)

    def keep(self) -> pl.DataFrame:
        """Keep all verdicts for the next time; return those of the judged repositories as rows."""
        return self._kept.write(self._judged)

    def unknown(self, judged: KeptVerdict) -> frozenset[IssueRef]:
        """What a verdict rests on that was not fetched: its targets, and what detection asked the kind of."""
        rests_on = {*(ref for ref, _ in judged.asked), *judged.verdict.targets}
        return frozenset(ref for ref in rests_on if self._store.kind(ref) is Kind.UNKNOWN)

    def _judge(self, stored: StoredThread, basis: bytes, known: KeptVerdict | None) -> KeptVerdict:
        digest = stored.digest(basis)
        if known is not None and known.digest == digest and self._is_unchanged(known):
            judged, how = known, "kept"
        else:
            judged, how = self._judge_anew(stored.read(), digest), "judged anew"
        verdict = judged.verdict
        _LOG.info("%s: %s: %s (%s)", verdict.ref, how, verdict.outcome, verdict.reason)
        self._kept.add(judged)
        return judged

    def _is_unchanged(self, known: KeptVerdict) -> bool:
        return all(self.kind_of(ref) is kind for ref, kind in known.asked)

    def _judge_anew(self, thread: Thread, digest: str) -> KeptVerdict:
        asked: dict[IssueRef, Kind] = {}

        def kind_of(ref: IssueRef) -> Kind:
            asked[ref] = self.kind_of(ref)
            return asked[ref]

        self.judged_anew += 1
        return KeptVerdict(self.decide(thread, kind_of), digest, tuple(sorted(asked.items())))

    def decide(self, thread: Thread, kind_of: KindOf) -> Verdict:
        """The verdict on one thread, see `judge_thread`."""
        return judge_thread(thread, kind_of, self.rules(thread.issue.repo), self._settings)

    def rules(self, repo: str) -> Rules:
        """The rules for one repository: a reference by a name that it once had is one to itself."""
        return Rules(
            allow_cross_repository=self._settings.allow_cross_repository,
            former_names=frozenset(self._names.get(repo, ())) - {repo},
            site=self._site,
        )

    def kind_of(self, ref: IssueRef) -> Kind:
        """What a reference points at.

        Numbers beyond the newest one that the crawl saw were not missing but not yet there: a dump ends
        somewhere, and threads go on to mention what came later. Up to there a dump is all there is.
        """
        kind = self._store.kind(ref)
        home = self._store.full_name(ref.repo)
        if ref.number > self._newest.get(home, ref.number):
            return Kind.UNKNOWN if kind is Kind.MISSING else kind
        return Kind.MISSING if kind is Kind.UNKNOWN and home in self._imported else kind

    def _rules_digest(self, repo: str) -> bytes:
        """A digest of what decides a verdict beside thread and tracker."""
        names = sorted(self.rules(repo).former_names)
        settings = self._settings.model_dump(mode="json")
        own = sorted(self._tickets.get(repo, {}).values())
        basis = json.dumps([repo, names, self._site, *own, settings, code_digest(*CODE)])
        return hashlib.sha256(basis.encode()).digest()


def judge_thread(thread: Thread, kind_of: KindOf, rules: Rules, settings: DetectSettings) -> Verdict:
    """The verdict on one thread; a duplicate less sure than the settings ask for is uncertain."""
    verdict = decide(thread, kind_of, rules)
    if verdict.outcome is VerdictOutcome.DUPLICATE and verdict.confidence < settings.min_confidence:
        return replace(verdict, outcome=VerdictOutcome.UNCERTAIN, reason="below_min_confidence")
    return verdict


class KeptVerdict(NamedTuple):
    """A verdict, and what it rests on beside its thread."""

    verdict: Verdict
    digest: str  # of the thread, the settings and the detector
    asked: tuple[tuple[IssueRef, Kind], ...]  # what detection asked the kind of, and what it was told


class KeptVerdicts:
    """Verdicts by the digest of what was judged, in columns, so that many take little memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schema = pl.Schema(_VERDICT | _BASIS)
        old = read_parquet(path) if path.exists() else self._schema.to_frame()
        self._old = old if old.schema == self._schema else self._schema.to_frame()  # another version's
        self._new: list[pl.DataFrame] = []
        self._rows: list[tuple[Any, ...]] = []

    def of(self, repo: str) -> dict[int, KeptVerdict]:
        """What was kept of a repository when the file was opened, by number."""
        rows = self._old.filter(pl.col("repo") == repo)
        return {row["number"]: _kept(row) for row in rows.iter_rows(named=True)}

    def add(self, kept: KeptVerdict) -> None:
        """Keep a verdict in place of an older one on the same issue."""
        asked = [{"issue": str(ref), "kind": str(kind)} for ref, kind in kept.asked]
        self._rows.append((*_row(kept.verdict), kept.digest, asked))
        if len(self._rows) >= _CHUNK:
            self._flush()

    def write(self, judged: Collection[str]) -> pl.DataFrame:
        """Write the file, readable by its owner alone."""
        self._flush()
        # Of an issue that was judged twice, the last verdict.
        new = pl.concat([self._schema.to_frame(), *self._new]).unique(
            ("repo", "number"), keep="last", maintain_order=True
        )
        new = new.sort("repo", "number")
        others = self._old.filter(~pl.col("repo").is_in(list(judged)))
        write_parquet(self._path, pl.concat([others, new]).sort("repo", "number"), private=True)
        return new.select(list(_VERDICT))

    def _flush(self) -> None:
        self._new.append(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
        self._rows = []


def read_verdicts(path: Path) -> pl.DataFrame:
    """Read all verdicts of a file that `detect` wrote."""
    return _read(path, list(_VERDICT))


def read_duplicates(path: Path) -> list[Verdict]:
    """Read the verdicts `duplicate` of a file that `detect` wrote."""
    found = read_verdicts(path).filter(pl.col("verdict") == VerdictOutcome.DUPLICATE.value)
    return [_verdict(row) for row in found.iter_rows(named=True)]


def count_verdicts(path: Path) -> dict[str, dict[str, int]]:
    """How many issues got each verdict for each reason."""
    counts: dict[str, dict[str, int]] = {}
    grouped = _read(path, ["verdict", "reason"]).group_by("verdict", "reason").len().sort("verdict", "reason")
    for outcome, reason, count in grouped.iter_rows():
        counts.setdefault(outcome, {})[reason] = count
    return counts


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    if not path.exists():
        raise DataError("no verdicts there; run `gis detect` first", path=path)
    return read_parquet(path, columns)


def _row(verdict: Verdict) -> tuple[Any, ...]:
    repo, number = verdict.ref
    return (
        repo,
        number,
        str(verdict.outcome),
        [ref.number for ref in verdict.targets if ref.repo == repo],
        [str(ref) for ref in verdict.targets if ref.repo != repo],
        verdict.confidence,
        verdict.reason,
        [
            {**asdict(evidence), "targets": [str(ref) for ref in evidence.targets]}
            for evidence in verdict.evidence
        ],
        str(verdict.relation) if verdict.outcome is VerdictOutcome.DUPLICATE else None,
    )


def _verdict(row: Mapping[str, Any]) -> Verdict:
    targets = [IssueRef(row["repo"], number) for number in row["targets"]]
    targets += [_ref(text) for text in row["targets_elsewhere"]]
    evidence = (
        Evidence(**{**item, "targets": tuple(_ref(text) for text in item["targets"])})
        for item in row["evidence"]
    )
    ref = IssueRef(row["repo"], row["number"])
    return Verdict(
        *(
            ref,
            VerdictOutcome(row["verdict"]),
            tuple(targets),
            row["confidence"],
            row["reason"],
            tuple(evidence),
        ),
        Relation(row["relation"] or Relation.DUPLICATE),
    )


def _kept(row: Mapping[str, Any]) -> KeptVerdict:
    asked = tuple((_ref(item["issue"]), Kind(item["kind"])) for item in row["asked"])
    return KeptVerdict(_verdict(row), row["digest"], asked)


def _ref(text: str) -> IssueRef:
    repo, _, number = text.rpartition("#")
    return IssueRef(repo, int(number))
