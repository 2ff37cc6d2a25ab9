"""Detection over a whole store, and the file of its verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from msgspec.json import Decoder

from gis_builder._decoding import Node
from gis_builder._detect import KindOf, Rules, decide, explain
from gis_builder._records import Evidence, IssueRef, Kind, Outcome, Relation, Thread, Verdict
from gis_builder._settings import DetectSettings
from gis_builder._store import RepoRow, Store, full_names
from pairkit.errors import ConfigError, DataError
from pairkit.parquet import read_parquet, write_parquet

FILE = "verdicts.parquet"
_RECORD = "verdicts"
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
_SCHEMA = pl.Schema(
    [
        ("repo", pl.String),
        ("number", pl.Int64),
        ("verdict", pl.String),
        ("targets", pl.List(pl.Int64)),  # in the same repository
        ("targets_elsewhere", pl.List(pl.String)),  # owner/name#number
        ("confidence", pl.Float64),
        ("reason", pl.String),
        ("evidence", pl.List(_EVIDENCE)),
        ("relation", pl.String),  # null where the issue is no duplicate
    ]
)


class _Basis(Node, frozen=True):
    """What verdicts rest on."""

    store: str
    settings: Any
    repositories: list[str]


_DECODER = Decoder(_Basis)


def detect(store: Store, path: Path, rows: Sequence[RepoRow], settings: DetectSettings) -> None:
    """Judge these repositories and write the verdicts; the store notes what they rest on."""
    write_verdicts(path, judge(store, full_names(rows), settings))
    basis = _basis(store, settings) | {"repositories": [row.name for row in rows]}
    store.set_meta(_RECORD, json.dumps(basis))


def judged_rows(store: Store, settings: DetectSettings) -> list[RepoRow]:
    """The repositories that were judged last.

    Raises:
        DataError: none was, the crawl went on since, or they were judged by other settings.
    """
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


def judge(store: Store, repos: Iterable[str], settings: DetectSettings) -> Iterator[Verdict]:
    """Decide every whole thread of these repositories, one at a time in memory."""
    context = _Context(store, settings)
    return (context.decide(thread) for repo in repos for thread in store.threads(repo))


def judge_asking(
    store: Store, threads: Iterable[Thread], settings: DetectSettings
) -> Iterator[tuple[Verdict, frozenset[IssueRef]]]:
    """Decide threads; beside each verdict stands what it rests on and the store doesn't know yet.

    That is its targets, and whatever it asked the kind of. With all of it fetched, the verdict is the one
    that a store of the whole tracker gives.
    """
    context = _Context(store, settings)
    return map(context.decide_asking, threads)


def explain_thread(store: Store, name: str, settings: DetectSettings) -> str:
    """One thread's evidence in order of time, what each piece counts for, and the verdict, in words.

    Args:
        store: The crawl.
        name: `owner/name#number`.
        settings: What counts as a duplicate.

    Raises:
        ConfigError: `name` is no issue's name, or the crawl has no such issue.
    """
    repo, _, number = name.rpartition("#")
    if "/" not in repo or not re.fullmatch(r"[0-9]{1,9}", number):
        raise ConfigError(f"--explain {name}: expected owner/name#number, such as rust-lang/rust#8051")
    thread = store.thread(IssueRef(repo, int(number)))
    if thread is None:
        raise ConfigError(f"--explain {name}: not among the issues of {store.path}")
    context = _Context(store, settings)
    return explain(thread, context.decide(thread), context.kind_of, context.rules(thread.issue.repo))


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as Parquet in one step, readable by its owner alone: they quote comments."""
    frames = list(_frames(iter(verdicts))) or [_frame([])]
    write_parquet(path, pl.concat(frames), private=True)


def read_duplicates(path: Path) -> list[Verdict]:
    """Read the verdicts `duplicate` of a file that `write_verdicts` wrote.

    Raises:
        DataError: the file is absent or not one of ours.
    """
    found = _read(path, list(_SCHEMA)).filter(pl.col("verdict") == Outcome.DUPLICATE.value)
    return [_verdict(row) for row in found.iter_rows(named=True)]


def count_verdicts(path: Path) -> dict[str, dict[str, int]]:
    """How many issues got each verdict for each reason.

    Raises:
        DataError: the file is absent or not one of ours.
    """
    counts: dict[str, dict[str, int]] = {}
    grouped = _read(path, ["verdict", "reason"]).group_by("verdict", "reason").len().sort("verdict", "reason")
    for outcome, reason, count in grouped.iter_rows():
        counts.setdefault(outcome, {})[reason] = count
    return counts


def _basis(store: Store, settings: DetectSettings) -> dict[str, Any]:
    return {"store": store.content_hash(), "settings": settings.model_dump(mode="json")}


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    try:
        rows = read_parquet(path, columns)
    except FileNotFoundError as error:
        raise DataError("no verdicts there; run `gis detect` first", path=path) from error
    except (DataError, OSError) as error:
        raise DataError(f"not a file of verdicts ({error}); run `gis detect` again", path=path) from error
    if any(rows.schema[name] != _SCHEMA[name] for name in columns):
        raise DataError("not a file of verdicts (other types); run `gis detect` again", path=path)
    return rows


class _Context:
    """What detection has to know beyond a thread."""

    def __init__(self, store: Store, settings: DetectSettings) -> None:
        rows = [row for row in store.all_repos() if row.full_name]
        self._store, self._settings = store, settings
        self._newest = {row.full_name: row.max_number for row in rows}
        self._imported = {row.full_name for row in rows if store.tasks(row.full_name, "import", done=True)}
        self._names: dict[str, set[str]] = {}
        for row in rows:
            self._names.setdefault(row.full_name, set()).add(row.name)

    def decide(self, thread: Thread) -> Verdict:
        """The verdict on one thread; a duplicate less sure than the settings ask for is uncertain."""
        return self._decide(thread, self.kind_of)

    def decide_asking(self, thread: Thread) -> tuple[Verdict, frozenset[IssueRef]]:
        """The verdict on one thread, and what it rests on that was not fetched."""
        asked: set[IssueRef] = set()

        def kind_of(ref: IssueRef) -> Kind:
            asked.add(ref)
            return self.kind_of(ref)

        verdict = self._decide(thread, kind_of)
        rests_on = asked.union(verdict.targets)
        return verdict, frozenset(ref for ref in rests_on if self._store.kind(ref) is Kind.UNKNOWN)

    def _decide(self, thread: Thread, kind_of: KindOf) -> Verdict:
        verdict = decide(thread, kind_of, self.rules(thread.issue.repo))
        is_unsure = verdict.confidence < self._settings.min_confidence
        if verdict.outcome is Outcome.DUPLICATE and is_unsure:
            return replace(verdict, outcome=Outcome.UNCERTAIN, reason="below_min_confidence")
        return verdict

    def rules(self, repo: str) -> Rules:
        """The rules for one repository: a reference by a name that it once had is one to itself."""
        return Rules(
            allow_cross_repository=self._settings.allow_cross_repository,
            former_names=frozenset(self._names.get(repo, ())) - {repo},
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


def _frames(verdicts: Iterator[Verdict]) -> Iterator[pl.DataFrame]:
    while chunk := list(islice(verdicts, _CHUNK)):
        yield _frame(chunk)


def _frame(verdicts: Iterable[Verdict]) -> pl.DataFrame:
    return pl.DataFrame([_row(verdict) for verdict in verdicts], schema=_SCHEMA, orient="row")


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
        str(verdict.relation) if verdict.outcome is Outcome.DUPLICATE else None,
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
        *(ref, Outcome(row["verdict"]), tuple(targets), row["confidence"], row["reason"], tuple(evidence)),
        Relation(row["relation"]),
    )


def _ref(text: str) -> IssueRef:
    repo, _, number = text.rpartition("#")
    return IssueRef(repo, int(number))
