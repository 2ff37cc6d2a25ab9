"""Sending a pair dataset to the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

from pairkit.errors import DataError
from pairkit.hub import Pushed, listing, push
from pairkit.records import CONFIG_FOLDERS

_REQUIRED = ("README.md", "run.json", "statistics.json")
_WHAT = "a dataset's folder as `gis`, `label` or `pairs` write it; `pairs merge` makes one of anything"


def push_dataset(
    folder: Path, repo: str, *, public: bool, revision: str | None, dry_run: bool, endpoint: str | None = None
) -> Pushed:
    """Send a dataset's folder in one commit; see `pairkit.push`."""
    files = listing(folder, _REQUIRED, _WHAT)
    if not any(Path(name).match(f"{CONFIG_FOLDERS['default']}/*.parquet") for name in files):
        raise DataError(f"there is no data/*.parquet in it; expected {_WHAT}", path=folder)
    return push(
        folder,
        repo,
        files,
        kind="dataset",
        command="pairs push",
        public=public,
        revision=revision,
        dry_run=dry_run,
        endpoint=endpoint,
    )
