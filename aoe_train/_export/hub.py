"""Sending a model folder to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from pairkit import hub

_REQUIRED = ("README.md", "run.json")  # what the model is, and what made it
_WHAT = "a folder that `aoe train` or `aoe export` wrote, whose model card and run.json say what it is"


def listing(folder: Path) -> dict[str, int]:
    """What a push would send: each file's path in the repository and its bytes.

    Raises:
        DataError: `folder` is no model folder with its card and its run, or holds a link.
    """
    return hub.listing(folder, _REQUIRED, _WHAT)


def push(
    folder: str | Path,
    repo: str,
    *,
    private: bool = False,
    revision: str | None = None,
    endpoint: str | None = None,
) -> str:
    """Send all files of `listing` in one commit; see `pairkit.hub.send`.

    Args:
        folder: A model folder.
        repo: `owner/name`; created unless it exists.
        private: Whether nobody else may see it; one that exists and is public is refused then.
        revision: Branch to commit to, created unless it exists; the main one if None.
        endpoint: The hub's address; the public hub, or that of HF_ENDPOINT, if None.

    Returns:
        The commit's address.

    Raises:
        ConfigError: `repo` is no repository's name, or is public.
        AuthError: there is no token, or it lacks the right to write there.
        RemoteError: the hub can't be reached or failed.
    """
    files = listing(Path(folder))
    return hub.send(
        Path(folder),
        repo,
        files,
        kind="model",
        private=private,
        message="Upload with aoe push",
        revision=revision,
        endpoint=endpoint,
    )
