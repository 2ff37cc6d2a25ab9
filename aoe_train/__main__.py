"""The entry point of `aoe` and `python -m aoe_train`, which `torchrun -m aoe_train train …` needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pairkit.base.cli.startup import start

if TYPE_CHECKING:
    from typer import Typer


def application() -> Typer:
    """The command line, whose imports are slow."""
    from aoe_train.api.cli import app

    return app


def main() -> None:
    """Run the command line."""
    # Must be set before torch is imported. By default idle threads spin, which multiplies CPU time on a busy
    # machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start(application)


if __name__ == "__main__":
    main()
