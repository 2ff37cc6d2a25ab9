"""Verdicts from GH Archive compared with those of a crawl.

    python benchmarks/archive_fidelity.py WORK REPO

WORK is the folder of a crawl with verdicts (`gis crawl --strategy all` or `gis import`, then `gis detect`).
The threads of REPO become events of an archive, each with the issue as it was at that time. The archive is
read in full, without author associations, and with random events removed. *Identical* is the share of all
issues with the same outcome and targets; recall and precision count (duplicate, original) pairs.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import polars as pl
from runs import argument_parser

from gis_builder.detection.decision import decide
from gis_builder.detection.verdict_files import read_verdicts
from gis_builder.gh_archive.archive_rows import read_rows
from gis_builder.gh_archive.extract import extract_hour
from gis_builder.gh_archive.judge_threads import threads_of
from gis_builder.settings import DetectSettings
from gis_builder.store import Store
from gis_builder.store.issue_records import Verdict, VerdictOutcome
from pairkit.base.system.seeded import keyed_unit
from tests.gis_builder.archive_world import (
    events_of,
    lines_of,
    saved_threads,
    write_hours,
)

_HOURS = tuple(f"2015-01-01-{hour}" for hour in range(12))
_LOST = (0.0, 0.2, 0.5, 0.88)

Judged = dict[int, tuple[str, frozenset[str]]]


def main() -> None:
    """Measure and print a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("repo")
    given = parser.parse_args()
    threads = saved_threads(given.work)[given.repo]
    crawled = from_file(given.work / "verdicts.parquet", given.repo)
    events = events_of(7, threads, pulls_of(given.work, given.repo))
    lines = lines_of(events)
    print(f"{given.repo}: {len(threads):,} issues, {len(lines):,} events\n")
    print(
        "| archive | issues seen | identical | recall | precision |\n|---|---|---|---|---|"
    )
    show("whole", lines, crawled)
    show("without associations", [without_association(line) for line in lines], crawled)
    for share in _LOST[1:]:
        kept = [line for line in lines if keyed_unit(1, "lost", line) >= share]
        show(f"{share:.0%} of the events lost", kept, crawled)


def from_file(path: Path, repo: str) -> Judged:
    """The verdicts of the crawl."""
    rows = read_verdicts(path).filter(pl.col("repo") == repo)
    return {
        row["number"]: (
            row["verdict"],
            frozenset(
                {
                    *(f"{repo}#{number}" for number in row["targets"]),
                    *row["targets_elsewhere"],
                }
            ),
        )
        for row in rows.iter_rows(named=True)
    }


def pulls_of(work: Path, repo: str) -> list[tuple[str, int, str]]:
    """The repository's pull requests, by number and time."""
    with Store.open(work / "store.sqlite") as store:
        return [
            (repo, issue.number, issue.created_at)
            for issue in store.issues(repo)
            if issue.is_pull
        ]


def without_association(line: bytes) -> bytes:
    """The event without the author's association."""
    event = json.loads(line)
    for part in ("issue", "comment"):
        if part in event["payload"]:
            del event["payload"][part]["author_association"]
    return json.dumps(event, separators=(",", ":")).encode()


def from_archive(lines: list[bytes]) -> Judged:
    """The verdicts on threads from an archive of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        write_hours(Path(folder), lines, _HOURS)
        made = []
        for hour in _HOURS:
            path = Path(folder, f"{hour}.parquet")
            path.write_bytes(
                b"".join(extract_hour(Path(folder, f"{hour}.json.gz"), hour))
            )
            made.append(path)
        repo = threads_of(read_rows(made).iter_rows(named=True))
    settings = DetectSettings()
    return {
        number: outcome_and_targets(decide(thread, repo.kind_of, repo.rules(settings)))
        for number, thread in repo.threads.items()
    }


def outcome_and_targets(verdict: Verdict) -> tuple[str, frozenset[str]]:
    """The part of a verdict that is compared."""
    return str(verdict.outcome), frozenset(map(str, verdict.targets))


def edges(judged: Judged) -> set[tuple[int, str]]:
    """All (duplicate, original) pairs."""
    duplicates = (
        (n, targets)
        for n, (outcome, targets) in judged.items()
        if outcome == VerdictOutcome.DUPLICATE
    )
    return {(number, target) for number, targets in duplicates for target in targets}


def show(name: str, lines: list[bytes], crawled: Judged) -> None:
    """Print a row of the table."""
    found = from_archive(lines)
    same = sum(found.get(number) == verdict for number, verdict in crawled.items())
    mine, theirs = edges(found), edges(crawled)
    both = len(mine & theirs)
    print(
        f"| {name} | {len(found):,} | {same / len(crawled):.2%} | {both / len(theirs):.3f} |"
        f" {both / max(1, len(mine)):.3f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
