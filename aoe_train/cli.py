"""The `aoe` command: reserved here so that the name is ours; training comes with a later release."""

from __future__ import annotations

import sys

from pairkit import __version__
from pairkit.errors import ConfigError
from pairkit.terminal import run

_HELP = "training (`aoe`) is not in release {version} of aoe-toolkit; `gis` is (see CHANGELOG.md)"


def main() -> None:
    """Say which release this is and that the command has no part in it yet (exit code 2)."""
    run(_refuse)


def _refuse() -> None:
    message = _HELP.format(version=__version__)
    if {"--help", "--version"} & set(sys.argv[1:]):
        print(message)
        return
    raise ConfigError(message)
