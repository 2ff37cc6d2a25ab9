"""The `label` command: reserved here so that the name is ours; labelling comes with a later release."""

from __future__ import annotations

from pairkit.terminal import reserved


def main() -> None:
    """Say which release this is and that the command has no part in it yet."""
    reserved("label", "labelling")
