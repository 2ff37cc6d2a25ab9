"""Entry point of `aoe` and `python -m aoe_train`, which `torchrun -m aoe_train train …` needs."""

import os

from pairkit.base.cli.startup import start


def main() -> None:
    """Run the command line."""
    # Must be set before torch is imported. By default idle threads spin, which multiplies CPU time on a busy
    # machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start("aoe_train.cli")


if __name__ == "__main__":
    main()
