"""The Hugging Face Hub: a dataset of it as tables, a model's folder, and a folder of ours sent there."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pairkit.app.errors import AuthError, ConfigError, DataError, RemoteError
from pairkit.app.extras import needed_for
from pairkit.app.printable import one_line
from pairkit.app.result_table import Printed, ResultTable
from pairkit.system.address import read_address

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_LOG = logging.getLogger(__name__)

_TOKEN = "HF_TOKEN"  # noqa: S105 - where the token is
_UNWANTED = ["onnx/*", "openvino/*", "original/*", "metal/*"]  # of a model: other formats' weights


@dataclass(frozen=True, slots=True, repr=False)
class Pushed(Printed):
    """The files that were sent, or would be sent.

    Attributes:
        repo: `owner/name`.
        files: Each file's path in the repository and its bytes.
        url: The URL of the commit; None if nothing was sent.
    """

    repo: str
    files: Mapping[str, int]
    url: str | None

    def to_dict(self) -> dict[str, Any]:
        """Repository, address, files, and bytes in all."""
        sizes = dict(self.files)
        return {"repo": self.repo, "url": self.url, "files": sizes, "bytes": sum(sizes.values())}

    def tables(self) -> list[ResultTable | str]:
        """The commit's address, or the files that would be sent."""
        return [self.table() if self.url is None else self.url]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command that reads the dataset."""
        return [] if self.url is None else [("read it from anywhere", ["pairs", "audit", self.repo])]

    def table(self) -> ResultTable:
        """The files."""
        files = ResultTable("file", "bytes", title=self.url or f"would go to {self.repo}")
        for name, size in self.files.items():
            files.add_row(name, size)
        files.add_rule()
        files.add_row("all", sum(self.files.values()))
        return files


def fetch_dataset(name: str) -> Mapping[str, Any]:
    """A dataset on the Hub, each split a `datasets.Dataset`."""
    with needed_for(f"{name}: reading from the Hub"):
        from datasets import load_dataset  # heavy, and only hub names need it
    dataset, _, config = name.partition(":")
    try:
        found: Mapping[str, Any] = load_dataset(dataset, config or None)
    except (OSError, ValueError) as error:
        raise RemoteError(
            f"{name}: no file or folder here, and not loaded from the Hub ({one_line(str(error), 200)});"
            " check name and network"
        ) from error
    return found


def fetch_model(name: str, revision: str | None, files: Sequence[str], *, called: str, instead: str) -> Path:
    """A model's folder, fetched from the Hub unless it was before."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=[*files], ignore_patterns=_UNWANTED)
        )
    except GatedRepoError as error:
        raise AuthError(
            f"{called}: accept its terms on the Hub first, and set HF_TOKEN to your token"
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ConfigError(
            f"{called}: no such folder, and no such model on the Hub (a private one needs HF_TOKEN)"
        ) from error
    except RevisionNotFoundError as error:
        raise ConfigError(f"{called}: has no revision {revision!r}") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise RemoteError(
            f"{called}: no such folder here, and the Hub could not be reached; check name and network, or"
            f" {instead}"
        ) from error


def listing(folder: Path, required: Collection[str], what: str) -> dict[str, int]:
    """The files to send: the path in the repository and the size of each. Hidden files are not sent."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        if path.is_symlink():
            raise DataError("is a link, and what it leads to would be sent; put the file there", path=path)
        if path.is_file():
            files[name.as_posix()] = path.stat().st_size
    if missing := [name for name in required if name not in files]:
        raise DataError(f"there is no {' and no '.join(missing)} in it; expected {what}", path=folder)
    return files


def push(
    folder: Path,
    repo: str,
    files: Mapping[str, int],
    *,
    kind: Literal["model", "dataset"],
    command: str,
    public: bool = False,
    revision: str | None = None,
    dry_run: bool = False,
    endpoint: str | None = None,
) -> Pushed:
    """Send files in one commit; the repository is created unless it exists, private unless `public`."""
    if dry_run:
        return Pushed(repo, files, None)
    with needed_for("sending to the Hub", "hub"):
        api, token = _api(endpoint)
    _LOG.info("sending %d files to %s: %s", len(files), api.endpoint, ", ".join(files))
    with _remote_errors(repo, token):
        api.create_repo(repo, repo_type=kind, private=None if public else True, exist_ok=True)
        if not public and not api.repo_info(repo, repo_type=kind).private:
            raise ConfigError(
                f"{repo} exists and everybody can see it; give --public (public=True), or choose another name"
            )
        if revision is not None:
            api.create_branch(repo, repo_type=kind, branch=revision, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo,
            repo_type=kind,
            folder_path=folder,
            revision=revision,
            allow_patterns=[*files],
            commit_message=f"Upload with {command}",
        )
    return Pushed(repo, files, str(commit.commit_url))


def _api(endpoint: str | None) -> tuple[HfApi, str]:
    from huggingface_hub import HfApi, constants

    token = os.environ.get(_TOKEN, "").strip()
    if not token:
        raise AuthError(f"no Hugging Face token found; set {_TOKEN} to one with the right to write")
    address = read_address(endpoint or constants.ENDPOINT, "the Hub's address", "https://huggingface.co")
    address.guard("the token", "choose another HF_ENDPOINT")
    return HfApi(endpoint=address.url, token=token, library_name="aoe-toolkit"), token


@contextmanager
def _remote_errors(repo: str, token: str) -> Iterator[None]:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    def error_text(error: Exception) -> str:
        return one_line(str(error).replace(token, "…"))

    try:
        yield
    except HFValidationError as error:
        raise ConfigError(f"repo = {repo}: {error_text(error)}; expected owner/name") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise AuthError(
                f"{repo}: the Hub refused the token ({status}); use one with the right to write there"
            ) from error
        raise RemoteError(
            f"{repo}: the Hub answered {error_text(error)}; run the same command again"
        ) from error
    except _transport_errors() as error:
        raise RemoteError(
            f"{repo}: the Hub can't be reached ({error_text(error)}); run the same command again"
        ) from error


def _transport_errors() -> tuple[type[Exception], ...]:
    """Errors of huggingface_hub's HTTP library, whichever it is, and the system's, such as offline mode."""
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))
