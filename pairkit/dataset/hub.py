"""Datasets and models from the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairkit.app.errors import AuthError, ConfigError, RemoteError
from pairkit.app.extras import needed_for
from pairkit.app.printable import one_line

_UNWANTED = ["onnx/*", "openvino/*", "original/*", "metal/*"]  # of a model: other formats' weights


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
