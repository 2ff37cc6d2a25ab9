"""`aoe`, and `python -m aoe_train`; so `torchrun -m aoe_train train …` trains in several processes."""

import os

from pairkit.app.startup import start


def main() -> None:
    """Run the command line."""
    # Before torch is loaded. Threads otherwise wait in a loop, which on a busy machine takes many times the
    # CPU time of the work itself.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    start("aoe_train.cli")


if __name__ == "__main__":
    main()
