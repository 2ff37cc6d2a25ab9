"""Speed and memory of reading an hour of GH Archive, beside `zcat`.

    python benchmarks/archive_extract.py FOLDER [--mib N] [--with-association]

FOLDER has hours of the archive. They are joined, repeatedly under new ids, to one hour of `--mib` compressed
MiB, and read by the first map and by `zcat`, each in its own process. Prints CPU seconds of all threads, MB
of JSON per second and peak memory. `--with-association` gives every author an association, as in later years;
then pushes are not read.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from machine import processor
from runs import argument_parser

_READ = """
import sys
from pathlib import Path
from gis_builder.gh_archive.extract import extract_hour
Path(sys.argv[2]).write_bytes(b"".join(extract_hour(Path(sys.argv[1]), "2015-01-01-0")))
"""


def main() -> None:
    """Measure and print a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mib", type=int, default=130)
    parser.add_argument("--with-association", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hour, out = Path(folder, "hour.json.gz"), Path(folder, "out")
        raw, events = join(
            sorted(given.folder.glob("*.json.gz")),
            hour,
            given.mib << 20,
            given.with_association,
        )
        packed = hour.stat().st_size
        print(
            f"{processor()}; {packed / 2**20:.0f} MiB packed, {raw / 1e6:,.0f} MB, {events:,} events\n"
        )
        print("| reader | CPU s | MB/s | peak MiB | out MB |\n|---|---|---|---|---|")
        readers = {
            "gis_builder": [sys.executable, "-c", _READ, str(hour), str(out)],
            "zcat": ["sh", "-c", f"zcat {hour} > /dev/null"],
        }
        for name, command in readers.items():
            out.unlink(missing_ok=True)
            seconds, peak = measured(command)
            size = f"{out.stat().st_size / 1e6:.1f}" if out.exists() else ""
            print(
                f"| {name} | {seconds:.1f} | {raw / 1e6 / seconds:.0f} | {peak:.0f} | {size} |",
                flush=True,
            )


def join(
    hours: Sequence[Path], out: Path, most: int, with_association: bool
) -> tuple[int, int]:
    """Write one large hour from several, each event with its own id; return its raw bytes and events."""
    lines = [
        line
        for hour in hours
        for line in gzip.decompress(hour.read_bytes()).splitlines()
    ]
    raw = number = turn = 0
    with gzip.open(out, "wb", 6) as file:
        while out.stat().st_size < most:
            for line in lines:
                number += 1
                event = json.loads(line)
                event["id"] = str(10_000_000_000 + number)
                event["repo"]["id"] += turn * 1_000_000_000
                if with_association:
                    for part in (
                        event["payload"].get("issue"),
                        event["payload"].get("comment"),
                    ):
                        if isinstance(part, dict):
                            part["author_association"] = "NONE"
                raw += file.write(
                    json.dumps(event, separators=(",", ":")).encode() + b"\n"
                )
            turn += 1
    return raw, number


def measured(command: Sequence[str]) -> tuple[float, float]:
    """CPU seconds of a command with its children, and the peak MiB of the largest process."""
    code = f"""
import resource, subprocess
subprocess.run({list(command)!r}, check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    seconds, peak = map(float, told.stdout.split())
    return seconds, peak


if __name__ == "__main__":
    main()
