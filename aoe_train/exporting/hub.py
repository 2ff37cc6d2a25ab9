"""Sending a model folder to the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

from pairkit.dataset import hub

_REQUIRED = ("README.md", "run.json")  # what the model is, and what made it
_WHAT = "a folder that `aoe train` or `aoe export` wrote, whose model card and run.json say what it is"


def listing(folder: Path) -> dict[str, int]:
    """What a push would send: each file's path in the repository and its bytes."""
    return hub.listing(folder, _REQUIRED, _WHAT)


def push(
    folder: Path,
    repo: str,
    *,
    public: bool = False,
    revision: str | None = None,
    dry_run: bool = False,
    endpoint: str | None = None,
) -> hub.Pushed:
    """Send all files of `listing` in one commit; see `aoe_train.push`."""
    return hub.push(
        folder,
        repo,
        listing(folder),
        kind="model",
        command="aoe push",
        public=public,
        revision=revision,
        dry_run=dry_run,
        endpoint=endpoint,
    )
