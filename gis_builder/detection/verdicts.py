"""Verdicts as files: those of the last `gis detect`, and all that were made, kept with what they rest on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from gis_builder.store.records import Evidence, IssueRef, Kind, Relation, Verdict, VerdictOutcome
from pairkit.app.errors import DataError
from pairkit.dataset.parquet import read_parquet, write_parquet

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
        self._old = self._read()
        self._new: list[pl.DataFrame] = []
        self._rows: list[tuple[Any, ...]] = []

    def of(self, repo: str) -> dict[int, KeptVerdict]:
        """What was kept of a repository when the file was opened, by number."""
        rows = self._old.filter(pl.col("repo") == repo)
        try:
            return {row["number"]: _kept(row) for row in rows.iter_rows(named=True)}
        except (TypeError, ValueError):  # not as we write it
            return {}

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

    def _read(self) -> pl.DataFrame:
        try:
            rows = read_parquet(self._path)
        except (DataError, OSError):
            return self._schema.to_frame()
        return rows if rows.schema == self._schema else self._schema.to_frame()


def write_verdicts(path: Path, verdicts: pl.DataFrame) -> None:
    """Write verdicts in one step, readable by their owner alone: they quote comments."""
    write_parquet(path, verdicts, private=True)


def read_verdicts(path: Path) -> pl.DataFrame:
    """Read all verdicts of a file that `write_verdicts` wrote."""
    return _read(path, list(_VERDICT))


def read_duplicates(path: Path) -> list[Verdict]:
    """Read the verdicts `duplicate` of a file that `write_verdicts` wrote."""
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
    try:
        rows = read_parquet(path, columns)
    except DataError as error:
        raise DataError(f"not a file of verdicts ({error}); run `gis detect` again", path=path) from error
    if any(rows.schema[name] != _VERDICT[name] for name in columns):
        raise DataError("not a file of verdicts (other types); run `gis detect` again", path=path)
    return rows


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
