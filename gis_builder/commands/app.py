"""The application that the commands of `gis` register with, and what several of them print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.app.application import application, examples
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout

if TYPE_CHECKING:
    from gis_builder import ArchiveBuilt, Built, Plan

__all__ = ["app", "examples", "show_built", "show_plan", "tell_to_train"]

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


def show_built(built: Built | ArchiveBuilt, *, as_json: bool, quiet: bool) -> None:
    """With --json the one object on stdout; else the table of counts there. Notes go to stderr either way."""
    for line in built.notes():
        say(line, quiet=quiet)
    if as_json:
        print_json(built.to_dict())
    else:
        stdout.print(built.table())


def tell_to_train(built: Built | ArchiveBuilt, *, quiet: bool) -> None:
    """Say how to train on a dataset."""
    command = ["aoe", "train", "--data", str(built.out), "--backbone", "minilm", "--out", "model"]
    next_step("train on it", command, quiet=quiet)
