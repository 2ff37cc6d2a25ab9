"""What commands say of a dataset that they made."""

from __future__ import annotations

from pathlib import Path

import pairkit
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout


def show_made(made: pairkit.MadeDataset, dropped: Path | None, *, json: bool, quiet: bool) -> None:
    """Show what is in it and what was left out, and say what one may do with it."""
    if dropped is not None:
        made.save_dropped(dropped)
    if json:
        print_json({"out": str(made.out), **made.statistics})
    else:
        stdout.print(made.table())
    command = ["aoe", "train", "--data", made.out or "", "--backbone", "minilm", "--out", "model"]
    next_step("train on it", command, quiet=quiet)
