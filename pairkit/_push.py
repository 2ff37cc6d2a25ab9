"""Sending a pair dataset to the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pairkit.errors import DataError
from pairkit.hub import listing, send
from pairkit.records import CONFIG_FOLDERS
from pairkit.result_table import ResultTable
from pairkit.terminal import table

_REQUIRED = ("README.md", "run.json", "statistics.json")
_WHAT = "a dataset's folder as `gis`, `label` or `pairs` write it; `pairs merge` makes one of anything"


@dataclass(frozen=True, slots=True, repr=False)
class Pushed:
    """What was sent, or would be.

    Attributes:
        repo: `owner/name`.
        files: Each file's path in the repository and its bytes.
        url: The commit's address; None where nothing was sent.
    """

    repo: str
    files: Mapping[str, int]
    url: str | None

    def table(self) -> ResultTable:
        """The files."""
        files = table("file", "bytes", title=self.url or f"would go to {self.repo}")
        for name, size in self.files.items():
            files.add_row(name, size)
        files.add_rule()
        files.add_row("all", sum(self.files.values()))
        return files

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def push_dataset(
    folder: Path, repo: str, *, public: bool, revision: str | None, dry_run: bool, endpoint: str | None = None
) -> Pushed:
    """Send a dataset's folder in one commit; see `pairkit.push`."""
    files = listing(folder, _REQUIRED, _WHAT)
    if not any(Path(name).match(f"{CONFIG_FOLDERS['default']}/*.parquet") for name in files):
        raise DataError(f"there is no data/*.parquet in it; expected {_WHAT}", path=folder)
    url = None
    if not dry_run:
        url = send(
            folder,
            repo,
            files,
            kind="dataset",
            private=not public,
            message="Upload with pairs push",
            revision=revision,
            endpoint=endpoint,
        )
    return Pushed(repo, files, url)
