"""Kill a `gis build` with SIGKILL at random times and compare its dataset with that of an undisturbed build.

    python benchmarks/kill.py [--kills 20] [--seed 1] [--dump DIR] [--strategy search]

During the killed build the test server fails a tenth of all requests in every way it can. The exit code is 1
unless both datasets have the same bytes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from gis import ENVIRONMENT, ROOT, SAMPLE, emulator, fingerprint, gis, measured
from runs import argument_parser

SHARES = {
    "502": 0.02,
    "504": 0.01,
    "rate_limited_200": 0.01,
    "secondary_403": 0.01,
    "too_many_429": 0.01,
    "partial": 0.02,
    "truncated": 0.01,
    "dropped": 0.02,
    "stalled": 0.005,
}
QUICK = [
    "--set",
    "crawl.backoff_s=0.01",
    "--set",
    "crawl.secondary_wait_s=0.05",
    "--set",
    "crawl.timeout_s=2",
]


def main() -> None:
    """Build once undisturbed and once with kills, and compare the datasets."""
    parser = argument_parser(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dump", type=Path, default=SAMPLE)
    parser.add_argument("--repos", default="")
    parser.add_argument("--strategy", default="search")
    options = parser.parse_args()
    repos = options.repos or ",".join(
        f"{path.parent.parent.name}/{path.parent.name}"
        for path in sorted(options.dump.glob("*/*/repo.json"))
    )
    folder = Path(tempfile.mkdtemp(prefix="gis-kill-"))
    # By default `search` sweeps small repositories, such as those of the sample.
    no_sweep = ["--set", "crawl.all_if_small=false"]
    common = [
        "build",
        "--repos",
        repos,
        "--strategy",
        options.strategy,
        *no_sweep,
        *QUICK,
    ]
    with emulator(options.dump, "--latency", "0.02") as url:
        undisturbed = measured(*common, "--api-url", url, "--out", str(folder / "calm"))
    print(f"undisturbed: {undisturbed.seconds:.1f} s, {undisturbed.result}")

    plan = folder / "faults.toml"
    plan.write_text(fault_plan(options.seed))
    out = folder / "stormy"
    kills = kill_repeatedly(options, common, plan, out, undisturbed.seconds)
    same = fingerprint(folder / "calm") == fingerprint(out)
    print(f"{kills} kills; datasets byte-identical: {same}")
    if same:
        shutil.rmtree(folder)
    else:
        print(f"both are in {folder}")
    raise SystemExit(0 if same else 1)


def fault_plan(seed: int) -> str:
    """All faults of the test server, each with its probability."""
    rules = [
        f'[[rules]]\nkind = "{kind}"\nprobability = {share}\n'
        for kind, share in SHARES.items()
    ]
    return f"seed = {seed}\nretry_after_s = 0.05\nstall_s = 1.0\n" + "".join(rules)


def kill_repeatedly(
    options: argparse.Namespace,
    common: list[str],
    plan: Path,
    out: Path,
    seconds: float,
) -> int:
    """Start the same build repeatedly; kill all but the last at a random time."""
    moments = random.Random(options.seed)  # noqa: S311 - moments, not a secret
    kills = 0
    with emulator(options.dump, "--latency", "0.02", "--faults", str(plan)) as url:
        command = gis(
            *common, "--api-url", url, "--out", str(out), "--quiet", "--fresh"
        )
        while kills < options.kills:
            process = subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT)
            time.sleep(moments.uniform(0.3, max(1.0, seconds)))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            elif process.returncode not in (0, 4):
                raise SystemExit(f"the build ended with {process.returncode}")
            # Finished before the kill: restart, so that kills hit all stages.
            elif process.returncode == 0:
                shutil.rmtree(out.with_name(out.name + ".work"))
            process.wait()
        while (
            subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, check=False).returncode
            == 4
        ):
            pass
    return kills


if __name__ == "__main__":
    main()
