"""Share of pairs about the same problem by relation, on a sample of rust-lang/rust that a person read.

    python benchmarks/relations.py                       # the table, with 95 % Wilson intervals
    python benchmarks/relations.py --draw 60 --seed 1    # pairs to be read, as TSV

The judgements are in `benchmarks/rust_relations.tsv` (number, target, same, note). One reader read both
issues and the closing of the first, and judged whether one fix closes both. A part of the problem, a symptom
of a general cause, or another way to the same end counts as "no". The texts are in
`../shared/data/rust-issues`; the relations are those of the current detector.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path

from detection import DUMP, kind_lookup, read_dump
from runs import argument_parser

from gis_builder.detection.decision import decide
from gis_builder.store.issue_records import Relation, VerdictOutcome
from pairkit.base.system.seeded import keyed_hash

JUDGED = Path(__file__).resolve().parent / "rust_relations.tsv"
Z = 1.96


def main() -> None:
    """Print the table of judgements, or draw pairs to judge."""
    parser = argument_parser(__doc__)
    parser.add_argument("--draw", type=int, help="number of pairs of each relation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not DUMP.is_dir():
        sys.exit(f"{DUMP}: no such folder; it must have the texts of the judged pairs")
    found = pairs()
    if options.draw is not None:
        draw(found, options.draw, options.seed)
    else:
        print(table(found))


def pairs() -> dict[tuple[int, int], Relation]:
    """Every pair of the dump's own issues that the detector finds, with its relation."""
    threads, kinds = read_dump()
    kind_of = kind_lookup(kinds)
    verdicts = [decide(thread, kind_of) for thread in threads]
    held = {thread.issue.ref for thread in threads}
    return {
        (verdict.ref.number, target.number): verdict.relation
        for verdict in verdicts
        if verdict.outcome is VerdictOutcome.DUPLICATE
        for target in verdict.targets
        if target in held
    }


def draw(found: dict[tuple[int, int], Relation], count: int, seed: int) -> None:
    """Print up to `count` random pairs of each relation."""
    for relation in Relation:
        own = [pair for pair, its in found.items() if its is relation]
        for number, target in sorted(
            own, key=lambda pair: keyed_hash(seed, "relation", *pair)
        )[:count]:
            print(number, target, relation, sep="\t")


def table(found: dict[tuple[int, int], Relation]) -> str:
    """One Markdown row for each relation."""
    judged: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with JUDGED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            relation = found.get((int(row["number"]), int(row["target"])))
            judged[relation or "no longer a pair"][row["same"]] += 1
    of_all = Counter(found.values())
    lines = [
        "| relation | pairs | read | same problem | share | 95 % |",
        "|" + "---|" * 6,
    ]
    for name in (*Relation, "no longer a pair"):
        same, read = judged[name]["yes"], judged[name].total()
        if read:
            low, high = wilson(same, read)
            counts = f"| {name} | {of_all[name]:,} | {read} | {same} "  # type: ignore[index]
            lines.append(f"{counts}| {same / read:.3f} | {low:.3f} to {high:.3f} |")
    return "\n".join(lines)


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share."""
    share, square = hits / count, Z * Z
    middle = share + square / (2 * count)
    half = Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    scale = 1 + square / count
    return (middle - half) / scale, (middle + half) / scale


if __name__ == "__main__":
    main()
