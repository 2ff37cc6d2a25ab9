"""Precision of each reason of a duplicate, against the links that a Jira records.

    python benchmarks/tracker_links.py [--list REASON]

The tickets in `../shared/data/jira` are imported without their links, judged, and compared with the links. A
target is right if links connect it with the ticket, also over other tickets. Tickets without a link have no
truth and are only counted. `--list` prints the tickets of one reason with targets and links.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from relations import wilson
from runs import argument_parser

import gis_builder
from gis_builder.detection.verdict_files import FILE, read_verdicts
from gis_builder.store.store import open_store
from pairkit.similarity.groups import Groups

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "jira"


def main() -> None:
    """Print the table, or the tickets of one reason."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--list", dest="reason", help="print the tickets with this reason"
    )
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: no such folder; it must have the tickets and their links")
    links = read_links()
    clusters = linked_clusters(links)
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    confidences: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for key, outcome, reason, confidence, targets in judged_tickets():
        truth = compare(key, targets, links, clusters)
        counts[outcome, reason][truth] += 1
        confidences[outcome, reason].append(confidence)
        if reason == options.reason:
            linked = " ".join(other for _, _, other in links[key]["links"])
            print(f"{key}\t{truth}\t{confidence}\t{' '.join(targets)}\tlinks: {linked}")
    if options.reason is None:
        print(table(counts, {key: mean(values) for key, values in confidences.items()}))


def read_links() -> dict[str, dict[str, list[list[str]]]]:
    """By key, the resolution and the links of each ticket."""
    with gzip.open(DATA / "duplicate-links.json.gz", "rt", encoding="utf-8") as file:
        return dict(json.load(file))


def linked_clusters(links: dict[str, dict[str, list[list[str]]]]) -> Groups[str]:
    """The tickets that links connect."""
    clusters = Groups[str]()
    for key, record in links.items():
        for _, _, other in record["links"]:
            clusters.join(key, other)
    return clusters


def compare(
    key: str,
    targets: list[str],
    links: dict[str, dict[str, list[list[str]]]],
    clusters: Groups[str],
) -> str:
    """Whether the targets are right, by the links."""
    if not links[key]["links"]:
        return "no link"
    if not targets:
        return "no target"
    return (
        "right"
        if any(clusters.find(key) == clusters.find(target) for target in targets)
        else "wrong"
    )


def judged_tickets() -> Iterator[tuple[str, str, str, float, list[str]]]:
    """Key, outcome, reason, confidence and keys of the targets of each ticket."""
    with tempfile.TemporaryDirectory() as work:
        gis_builder.import_tracker(DATA / "tickets.jsonl.gz", work, progress=False)
        gis_builder.detect(
            work, settings={"detect.allow_cross_repository": True}, progress=False
        )
        with open_store(Path(work)) as store:
            tickets = store.tickets()
        keys = {
            f"{repo}#{row.number}": key
            for repo, rows in tickets.items()
            for key, row in rows.items()
        }
        for row in read_verdicts(Path(work) / FILE).iter_rows(named=True):
            own = [f"{row['repo']}#{number}" for number in row["targets"]]
            targets = [keys.get(ref, ref) for ref in [*own, *row["targets_elsewhere"]]]
            yield (
                keys[f"{row['repo']}#{row['number']}"],
                row["verdict"],
                row["reason"],
                row["confidence"],
                targets,
            )


def table(
    counts: dict[tuple[str, str], Counter[str]],
    confidences: dict[tuple[str, str], float],
) -> str:
    """One Markdown row for each reason."""
    columns = (
        "verdict",
        "reason",
        "confidence",
        "right",
        "wrong",
        "share",
        "95 %",
        "no target",
        "no link",
    )
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    duplicates = Counter[str]()
    for (outcome, reason), found in sorted(counts.items()):
        lines.append(
            _row(outcome, reason, f"{confidences[outcome, reason]:.2f}", found)
        )
        if outcome == "duplicate":
            duplicates += found
    return "\n".join([*lines, _row("duplicate", "all", "", duplicates)])


def _row(outcome: str, reason: str, confidence: str, found: Counter[str]) -> str:
    right, known = found["right"], found["right"] + found["wrong"]
    share = interval = "-"
    if known:
        low, high = wilson(right, known)
        share, interval = f"{right / known:.2f}", f"{low:.2f} to {high:.2f}"
    truth = (
        right,
        found["wrong"],
        share,
        interval,
        found["no target"],
        found["no link"],
    )
    return f"| {' | '.join(map(str, (outcome, reason, confidence, *truth)))} |"


if __name__ == "__main__":
    main()
