"""Share of planted credentials that `gis` removes, by kind, beside detect-secrets; and false alarms.

    python benchmarks/secrets_recall.py [--per-kind 200] [--seed 0] [-v]

`planted_secrets.py` makes the texts; its author had not seen the rules. A credential counts as removed if its
string is no longer in the text. It counts as found by detect-secrets (1.5.0, all plugins, own environment) if
a reported value contains it or at least two thirds of it. Look-alikes must stay. If
`../shared/data/rust-issues` exists, removals from real texts are counted by kind, too; `-v` shows each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from detection import DUMP, read_dump
from planted_secrets import Planted, plant
from runs import argument_parser

from gis_builder.pairing.secrets import KINDS, scrub_secrets

PEER = "detect-secrets==1.5.0"
_SCAN = """
import json, sys
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
with default_settings():
    for line in sys.stdin:
        text = json.loads(line)
        found = [s.secret_value for row in text.splitlines() for s in scan_line(row) if s.secret_value]
        print(json.dumps(found), flush=True)
"""


def main() -> None:
    """Scrub the texts and print a table by kind, and counts for real texts."""
    parser = argument_parser(__doc__)
    parser.add_argument("--per-kind", type=int, default=200, help="texts of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--no-peer", action="store_true", help="leave detect-secrets out"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show misses and false alarms"
    )
    options = parser.parse_args()
    planted = list(plant(options.seed, options.per_kind))
    start = time.process_time()
    ours = [case.secret not in scrub_secrets(case.text)[0] for case in planted]
    seconds = time.process_time() - start
    peer = (
        None
        if options.no_peer
        else [_holds(*pair) for pair in zip(planted, peer_values(planted), strict=True)]
    )
    print(table(planted, ours, peer))
    print(f"\n{len(planted):,} texts, {seconds:.1f} s of CPU")
    if options.verbose:
        for case, gone in zip(planted, ours, strict=True):
            if gone == (case.kind == "none"):
                print(
                    f"{case.kind} {case.name}: {case.secret[:80]!r} in {_around(case)!r}"
                )
    if DUMP.is_dir():
        print(f"\n{real_texts(verbose=options.verbose)}")


def peer_values(planted: Sequence[Planted]) -> Iterator[list[str]]:
    """The findings of detect-secrets in each text."""
    with tempfile.TemporaryDirectory(prefix="secrets-peer-") as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run(
            [sys.executable, "-m", "venv", str(python.parents[1])], check=True
        )
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", PEER],
            check=True,
            capture_output=True,
        )
        texts = "".join(json.dumps(case.text) + "\n" for case in planted)
        done = subprocess.run(
            [str(python), "-c", _SCAN],
            input=texts,
            text=True,
            check=True,
            stdout=subprocess.PIPE,
        )
    return (json.loads(line) for line in done.stdout.splitlines())


def _holds(case: Planted, values: Sequence[str]) -> bool:
    near = (
        value
        for value in values
        if value in case.secret and 3 * len(value) >= 2 * len(case.secret)
    )
    return any(case.secret in value for value in values) or any(near)


def table(
    planted: Sequence[Planted], ours: Sequence[bool], peer: Sequence[bool] | None
) -> str:
    """One row per kind: number of texts, and the shares that we remove and detect-secrets finds."""
    head = "| kind | texts | gone, ours |" + (
        " found, detect-secrets |" if peer else ""
    )
    rows = [head, "|---" * (head.count("|") - 1) + "|"]
    for kind in (*KINDS, "none"):
        places = [place for place, case in enumerate(planted) if case.kind == kind]
        if places:
            shares = [
                sum(found[place] for place in places) / len(places)
                for found in (ours, peer)
                if found
            ]
            name = "look-alikes, which should stay" if kind == "none" else kind
            rows.append(
                f"| {name} | {len(places):,} | "
                + " | ".join(f"{share:.3f}" for share in shares)
                + " |"
            )
    return "\n".join(rows)


def real_texts(*, verbose: bool) -> str:
    """Counts of removals from titles and bodies of a real tracker."""
    counts: Counter[str] = Counter()
    threads, _ = read_dump()
    for issue in (thread.issue for thread in threads):
        text = f"{issue.title}\n\n{issue.body}"
        scrubbed, found = scrub_secrets(text)
        counts.update(found)
        if verbose and found.keys() - {"email"}:
            print(f"#{issue.number} {found}: {_difference(text, scrubbed)!r}")
    kinds = (
        ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
        or "nothing"
    )
    return f"{len(threads):,} texts of {DUMP.name}: {kinds}"


def _difference(text: str, scrubbed: str) -> str:
    lines = zip(text.splitlines(), scrubbed.splitlines(), strict=False)
    return "; ".join(
        before.strip()[:120]
        for before, after in lines
        if before != after and "[secret]" in after
    )


def _around(case: Planted) -> str:
    place = case.text.find(case.secret)
    return case.text[max(0, place - 60) : place + len(case.secret[:80]) + 20]


if __name__ == "__main__":
    main()
