"""Precision and recall of the detector on labelled threads of rust-lang/rust, and its speed on the dump.

    python benchmarks/detection.py [--set dev] [-v]

The labels are in `benchmarks/rust_threads.tsv` (number, verdict, targets, class, note, set), the texts in
`../shared/data/rust-issues`. A duplicate counts as found if the verdict is `duplicate` and shares a target
with the label; calls on threads labelled `uncertain` are counted separately. Prints a Markdown table by class
for each set; `-v` lists every miss.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runs import argument_parser

from gis_builder.detection.decision import decide
from gis_builder.detection.statements import KindOf
from gis_builder.store.issue_records import (
    Comment,
    IssueRef,
    Kind,
    Thread,
    Verdict,
    VerdictOutcome,
)
from gis_builder.trackers.dump import find_dumps

HERE = Path(__file__).resolve().parent
LABELS = HERE / "rust_threads.tsv"
DUMP = HERE.parents[1] / "shared" / "data" / "rust-issues"


@dataclass(frozen=True)
class Label:
    """A person's label of a thread."""

    number: int
    verdict: str
    targets: frozenset[int]
    group: str
    note: str
    subset: str


@dataclass
class Score:
    """Counts of right and wrong calls of `duplicate`."""

    found: int = 0
    wrong: int = 0
    unsure: int = 0  # calls on threads labelled `uncertain`; not part of precision
    missed: int = 0
    rows: int = 0

    def add(self, label: Label, verdict: Verdict) -> bool:
        """Count one thread; False if the call is wrong."""
        self.rows += 1
        is_called = verdict.outcome is VerdictOutcome.DUPLICATE
        if label.verdict == "uncertain":
            self.unsure += is_called
            return not is_called
        is_duplicate = label.verdict == "duplicate"
        is_found = (
            is_called
            and is_duplicate
            and any(ref.number in label.targets for ref in verdict.targets)
        )
        self.found += is_found
        self.wrong += is_called and not is_found
        self.missed += is_duplicate and not is_found
        return is_found or not (is_called or is_duplicate)

    def cells(self) -> list[str]:
        """Rows, found, wrong, unsure, missed, precision, recall and F1, as text."""
        called, real = self.found + self.wrong, self.found + self.missed
        f1 = 2 * self.found / (called + real) if called + real else None
        shares = (
            _share(self.found, called),
            _share(self.found, real),
            "-" if f1 is None else f"{f1:.3f}",
        )
        return [
            str(n)
            for n in (self.rows, self.found, self.wrong, self.unsure, self.missed)
        ] + list(shares)


def main() -> None:
    """Score, print the tables, and time the detector."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--set", dest="subset", help="score only these rows: dev, test, fresh or fresh2"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list the misses")
    options = parser.parse_args()
    if not DUMP.is_dir():
        sys.exit(
            f"{DUMP}: no such folder; it must have the texts of the labelled threads"
        )
    threads, kinds = read_dump()
    kind_of = kind_lookup(kinds)
    started = time.perf_counter()
    verdicts = {thread.issue.number: decide(thread, kind_of) for thread in threads}
    seconds = time.perf_counter() - started
    labels = [
        label for label in read_labels(LABELS) if options.subset in (None, label.subset)
    ]
    for subset in sorted({label.subset for label in labels}):
        rows = [label for label in labels if label.subset == subset]
        print(f"\n{subset}: {len(rows)} threads\n\n{table(rows, verdicts)}")
        if options.verbose:
            print("\n".join(misses(rows, verdicts)))
    comments = sum(len(thread.comments) for thread in threads)
    print(
        f"\nwhole dump: {len(threads)} issues, {comments} comments of issues, {seconds:.2f} s"
    )


def table(labels: Sequence[Label], verdicts: Mapping[int, Verdict]) -> str:
    """One Markdown row for each class of label, and one for all."""
    scores: dict[str, Score] = defaultdict(Score)
    for label in labels:
        for name in (label.group, "all"):
            scores[name].add(label, verdicts[label.number])
    head = (
        "| class | threads | found | wrong | unsure | missed | precision | recall | F1 |\n|"
        + "---|" * 9
    )
    names = [*sorted(set(scores) - {"all"}), "all"]
    return "\n".join(
        [
            head,
            *(
                "| " + " | ".join([name, *scores[name].cells()]) + " |"
                for name in names
            ),
        ]
    )


def misses(labels: Iterable[Label], verdicts: Mapping[int, Verdict]) -> list[str]:
    """One line for each wrong call."""
    lines = []
    for label in labels:
        verdict = verdicts[label.number]
        if not Score().add(label, verdict):
            wanted = f"{label.verdict} {sorted(label.targets) or ''}".strip()
            got = f"{verdict.outcome} {[ref.number for ref in verdict.targets] or ''}".strip()
            lines.append(
                f"#{label.number} [{label.group}] wanted {wanted}, got {got} ({verdict.reason}): {label.note}"
            )
    return lines


def read_labels(path: Path) -> list[Label]:
    """Read the labelled threads."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Label(
                number=int(row["number"]),
                verdict=row["verdict"],
                targets=frozenset(
                    int(target) for target in row["targets"].split(",") if target
                ),
                group=row["class"],
                note=row["note"],
                subset=row["set"],
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def read_dump() -> tuple[list[Thread], dict[IssueRef, Kind]]:
    """Read the dump's issues with their comments, and what each number is."""
    kinds: dict[IssueRef, Kind] = {}
    threads: dict[int, Thread] = {}
    comments: dict[int, list[Comment]] = defaultdict(list)
    for dump in find_dumps(DUMP):
        for row in dump.issues():
            issue = replace(row.record, repo=row.repo)
            kinds[issue.ref] = Kind.PULL if issue.is_pull else Kind.ISSUE
            if not issue.is_pull:
                threads[issue.number] = Thread(issue)
        for row in dump.comments():
            if row.number in threads:
                comments[row.number].append(row.record)
    return [
        replace(
            thread,
            comments=tuple(
                sorted(comments[number], key=lambda c: (c.created_at, c.id))
            ),
        )
        for number, thread in threads.items()
    ], kinds


def kind_lookup(kinds: Mapping[IssueRef, Kind]) -> KindOf:
    """The kind of each reference; unknown for numbers after the last one of the dump."""
    last = max(ref.number for ref in kinds)
    repos = {ref.repo for ref in kinds}

    def kind_of(ref: IssueRef) -> Kind:
        unseen = (
            Kind.UNKNOWN if ref.repo not in repos or ref.number > last else Kind.MISSING
        )
        return kinds.get(ref, unseen)

    return kind_of


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


if __name__ == "__main__":
    main()
