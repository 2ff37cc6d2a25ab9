"""Sending a model folder to the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.errors import AuthError, ConfigError, DataError, RemoteError

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REQUIRED = ("README.md", "run.json")  # what the model is, and what made it


def listing(folder: Path) -> dict[str, int]:
    """What a push would send: each file's path in the repository and its bytes.

    Raises:
        DataError: `folder` is no model folder with its card and its run.
    """
    files = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    missing = [name for name in _REQUIRED if name not in files]
    if missing:
        raise DataError(
            f"there is no {' and no '.join(missing)} in it; expected a folder that `aoe train` or "
            "`aoe export` wrote, whose model card and run.json say what it is",
            path=folder,
        )
    return files


def push(
    folder: str | Path,
    repo: str,
    *,
    private: bool = False,
    revision: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Send all files of `listing` in one commit; the repository is created unless it exists.

    The token is the one of `hf auth login` or the environment variable HF_TOKEN.

    Args:
        folder: A model folder.
        repo: `owner/name`.
        private: Who may see a repository that is created here; one that exists keeps its visibility.
        revision: Branch to commit to, created unless it exists; the main one if None.
        endpoint: The hub's address; the public hub, or that of HF_ENDPOINT, if None.

    Returns:
        The commit's address.

    Raises:
        ConfigError: `repo` is no repository's name.
        AuthError: there is no token, or it lacks the right to write there.
        RemoteError: the hub can't be reached or failed.
    """
    files = listing(Path(folder))
    with _remote_errors(repo):
        api = _api(endpoint)
        api.create_repo(repo, private=private or None, exist_ok=True)
        if revision is not None:
            api.create_branch(repo, branch=revision, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo,
            folder_path=folder,
            revision=revision,
            allow_patterns=list(files),
            commit_message="Upload with aoe push",
        )
    return str(commit.commit_url)


def _api(endpoint: str | None) -> HfApi:
    from huggingface_hub import HfApi, get_token

    if get_token() is None:
        raise AuthError("no Hugging Face token found; set HF_TOKEN or run `hf auth login`")
    return HfApi(endpoint=endpoint, library_name="aoe-toolkit")


@contextmanager
def _remote_errors(repo: str) -> Iterator[None]:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        yield
    except HFValidationError as error:
        raise ConfigError(f"--repo {repo}: {error}; expected owner/name") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise AuthError(
                f"{repo}: the hub refused the token ({status}); use one with the right to write there"
            ) from error
        raise RemoteError(f"{repo}: the hub answered {error}; run the same command again") from error
    except _transport_errors() as error:
        raise RemoteError(
            f"{repo}: the hub can't be reached ({error}); run the same command again"
        ) from error


def _transport_errors() -> tuple[type[Exception], ...]:
    """Errors of huggingface_hub's HTTP library, whichever it is, and the system's, such as offline mode."""
    from huggingface_hub.errors import HfHubHTTPError

    return tuple(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception))
