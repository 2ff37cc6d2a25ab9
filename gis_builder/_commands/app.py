"""The application that the commands of `gis` register with, and what several of them print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.application import application, examples
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout

if TYPE_CHECKING:
    from gis_builder import Plan

__all__ = ["app", "examples", "show_plan"]

app = application("gis", "From duplicate GitHub issues to a leak-free dataset of text pairs.")


def show_plan(planned: Plan, repos: str, *, as_json: bool, quiet: bool) -> None:
    """Print a plan, and how to go on."""
    if as_json:
        print_json(planned.to_dict())
        return
    if planned.requests:
        stdout.print(planned.table())
    for line in planned.notes():
        stdout.print(line, markup=False)
    if planned.requests:
        next_step("build the dataset", ["gis", "build", "--repos", repos, "--out", "gis"], quiet=quiet)
