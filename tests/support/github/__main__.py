"""Serve saved trackers as GitHub: `python -m tests.support.github DUMP --port N`.

A command after `--` is run while the server is up; `{url}` in it is replaced by the server's address.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.support.github import Options, serve


def main():
    """Serve until Ctrl-C, or until the command has ended."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    command = words[end + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.github", description=__doc__
    )
    parser.add_argument(
        "dump", nargs="+", type=Path, help="Folders with saved trackers."
    )
    parser.add_argument("--port", type=int, default=0, help="0 for a free port.")
    parser.add_argument(
        "--faults", type=Path, help="A fault plan in TOML; see faults.py."
    )
    parser.add_argument(
        "--latency", type=float, default=0.0, help="Minimum seconds per response."
    )
    parser.add_argument(
        "--points", type=int, default=5000, help="Points per token and hour."
    )
    given = parser.parse_args(words[:end])
    with serve(
        given.dump,
        port=given.port,
        faults=given.faults,
        latency_s=given.latency,
        options=Options(points=given.points),
    ) as server:
        print(f"a local GitHub at {server.url}", flush=True)
        if command:
            filled = [part.replace("{url}", server.url) for part in command]
            return subprocess.run(
                filled, env=os.environ | {"GITHUB_TOKEN": "any"}, check=False
            ).returncode
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
