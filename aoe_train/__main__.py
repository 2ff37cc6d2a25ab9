"""The entry point of `aoe` and `python -m aoe_train`, which `torchrun -m aoe_train train …` needs."""

from __future__ import annotations

import os

from pairkit.base.cli.startup import start

CLI = (
    "aoe_train.api.cli"  # the module of the application, which takes a while to import
)


def main() -> None:
    """Run the command line."""
    # Must be set before torch is imported. By default idle threads spin, which multiplies CPU time on a busy
    # machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start(CLI)


if __name__ == "__main__":
    main()
