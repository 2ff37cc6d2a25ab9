"""Files of verdicts, and the result of `detect`.

`verdicts.parquet` has the verdicts of the last `gis detect`, `kept.parquet` every verdict with a hash of its
inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from gis_builder.store import (
    Evidence,
    IssueRef,
    Kind,
    Relation,
    Verdict,
    VerdictOutcome,
)
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import DataError
from pairkit.dataset.table_files import read_parquet, write_parquet

FILE = "verdicts.parquet"
KEPT_FILE = "kept.parquet"
_CHUNK = 4096
_KEY = ("repo", "number")

_TEXTS = dict.fromkeys(("kind", "url", "who", "when"), pl.String)
_EVIDENCE = pl.Struct(_TEXTS | {"targets": pl.List(pl.String), "said": pl.String})
_VERDICT: dict[str, Any] = {
    "repo": pl.String,
    "number": pl.Int64,
    "verdict": pl.String,
    "targets": pl.List(pl.Int64),  # in the same repository
    "targets_elsewhere": pl.List(pl.String),  # owner/name#number
    "confidence": pl.Float64,
    "reason": pl.String,
    "evidence": pl.List(_EVIDENCE),
    "relation": pl.String,  # null if the issue is not a duplicate
}
_INPUTS: dict[str, Any] = {
    "digest": pl.String,
    "dependencies": pl.List(pl.Struct({"issue": pl.String, "kind": pl.String})),
}


class CachedVerdict(NamedTuple):
    """A verdict with its inputs."""

    verdict: Verdict
    input_hash: str  # of the thread, the settings and the code
    # The mentioned issues whose kind mattered.
    dependencies: tuple[tuple[IssueRef, Kind], ...]


class VerdictCache:
    """Verdicts with their inputs, in columns, so that many verdicts need little memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schema = pl.Schema(_VERDICT | _INPUTS)
        self._old = _saved(path, self._schema)
        self._new: list[pl.DataFrame] = []
        self._rows: list[tuple[Any, ...]] = []

    def of(self, repo: str) -> dict[int, CachedVerdict]:
        """The saved verdicts of a repository, by number."""
        rows = self._old.filter(pl.col("repo") == repo)
        return {
            row["number"]: _cached_verdict(row) for row in rows.iter_rows(named=True)
        }

    def add(self, kept: CachedVerdict) -> None:
        """Add a verdict, which replaces an older one on the same issue."""
        dependencies = [
            {"issue": str(ref), "kind": str(kind)} for ref, kind in kept.dependencies
        ]
        self._rows.append((*_verdict_row(kept.verdict), kept.input_hash, dependencies))
        if len(self._rows) >= _CHUNK:
            self._flush()

    def write(self, judged: Collection[str]) -> pl.DataFrame:
        """Write the file, readable only by its owner; return the verdicts of the judged repositories."""
        self._flush()
        new = pl.concat(self._new)
        new = new.unique(_KEY, keep="last", maintain_order=True).sort(_KEY)
        others = self._old.filter(~pl.col("repo").is_in(list(judged)))
        verdicts = pl.concat([others, new]).sort(_KEY)
        write_parquet(self._path, verdicts, private=True)
        return new.select(list(_VERDICT))

    def _flush(self) -> None:
        self._new.append(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
        self._rows = []


def _saved(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """The rows of a cache; none if it has the columns of another version."""
    if path.exists() and (rows := read_parquet(path)).schema == schema:
        return rows
    return schema.to_frame()


def read_verdicts(path: Path, columns: Sequence[str] = tuple(_VERDICT)) -> pl.DataFrame:
    """Read a file of verdicts."""
    if not path.exists():
        raise DataError("the file doesn't exist; run `gis detect` first", path=path)
    return read_parquet(path, list(columns))


def read_duplicates(path: Path) -> list[Verdict]:
    """Read the duplicates in a file of verdicts."""
    is_duplicate = pl.col("verdict") == VerdictOutcome.DUPLICATE.value
    duplicates = read_verdicts(path).filter(is_duplicate)
    return list(map(_verdict_of_row, duplicates.iter_rows(named=True)))


def count_verdicts(path: Path) -> dict[str, dict[str, int]]:
    """Number of issues by verdict and reason."""
    counts: dict[str, dict[str, int]] = {}
    grouped = (
        read_verdicts(path, ["verdict", "reason"]).group_by("verdict", "reason").len()
    )
    for outcome, reason, count in grouped.sort("verdict", "reason").iter_rows():
        counts.setdefault(outcome, {})[reason] = count
    return counts


def _verdict_row(verdict: Verdict) -> tuple[object, ...]:
    """The values of the columns of `_VERDICT`."""
    repo, number = verdict.ref
    evidence = []
    for item in verdict.evidence:
        targets = [str(ref) for ref in item.targets]
        evidence.append(asdict(item) | {"targets": targets})
    return (
        repo,
        number,
        str(verdict.outcome),
        [ref.number for ref in verdict.targets if ref.repo == repo],
        [str(ref) for ref in verdict.targets if ref.repo != repo],
        verdict.confidence,
        verdict.reason,
        evidence,
        str(verdict.relation) if verdict.outcome is VerdictOutcome.DUPLICATE else None,
    )


def _verdict_of_row(row: Mapping[str, Any]) -> Verdict:
    repo = row["repo"]
    near = [IssueRef(repo, number) for number in row["targets"]]
    evidence = []
    for item in row["evidence"]:
        targets = tuple(map(parse_ref, item["targets"]))
        evidence.append(Evidence(**(item | {"targets": targets})))
    return Verdict(
        ref=IssueRef(repo, row["number"]),
        outcome=VerdictOutcome(row["verdict"]),
        targets=(*near, *map(parse_ref, row["targets_elsewhere"])),
        confidence=row["confidence"],
        reason=row["reason"],
        evidence=tuple(evidence),
        relation=Relation(row["relation"] or Relation.DUPLICATE),
    )


def _cached_verdict(row: Mapping[str, Any]) -> CachedVerdict:
    items = row["dependencies"]
    dependencies = tuple(
        (parse_ref(item["issue"]), Kind(item["kind"])) for item in items
    )
    return CachedVerdict(_verdict_of_row(row), row["digest"], dependencies)


def parse_ref(text: str) -> IssueRef:
    """Parse `owner/name#number`."""
    repo, _, number = text.rpartition("#")
    return IssueRef(repo, int(number))


@dataclass(frozen=True, repr=False)
class Detected(Printed):
    """The verdicts of a working folder.

    Attributes:
        out: The file of verdicts.
        counts: Number of issues by verdict and reason.
        judged_anew: Number of threads judged in this run; the other verdicts were reused.
    """

    out: Path
    counts: Mapping[str, Mapping[str, int]]
    judged_anew: int

    @property
    def duplicates(self) -> int:
        """Number of duplicates."""
        return sum(self.counts.get(VerdictOutcome.DUPLICATE.value, {}).values())

    @property
    def verdicts(self) -> pl.DataFrame:
        """A row for each issue: verdict, targets, confidence, reason, evidence."""
        return read_verdicts(self.out)

    def to_dict(self) -> dict[str, Any]:
        """The counts as one object for scripts."""
        return {"out": str(self.out), **self.counts}

    def notes(self) -> list[str]:
        """A line on duplicates of issues in other repositories, if they are not accepted."""
        return cross_repository_notes(self.counts)

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command to run after detection, if there are duplicates."""
        if not self.duplicates:
            return []
        pair = ["gis", "pair", "--work", str(self.out.parent), "--out", "gis-dataset"]
        return [("make a dataset from the duplicates", pair)]

    def table(self) -> ResultTable:
        """Number of issues by verdict and reason."""
        table = ResultTable("verdict", "reason", "issues", left=("reason",))
        for outcome, reasons in self.counts.items():
            for row, (reason, count) in enumerate(
                sorted(reasons.items(), key=lambda item: -item[1])
            ):
                table.add_row("" if row else outcome, reason, count)
        return table


def cross_repository_notes(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line on the verdicts that only a setting rejects."""
    count = counts.get("uncertain", {}).get("cross_repository")
    if not count:
        return []
    return [
        f"{count:,} closed issues name an original in another repository, so they are uncertain;"
        " --set detect.allow_cross_repository=true makes them duplicates"
    ]
