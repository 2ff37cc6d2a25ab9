"""Datasets and models from the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairkit.base.errors import AuthError, ConfigError, RemoteError
from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line

_IGNORED = ["onnx/*", "openvino/*", "original/*", "metal/*"]  # weights in other formats


def fetch_dataset(name: str) -> Mapping[str, Any]:
    """A dataset from the Hub; each split is a `datasets.Dataset`."""
    with needed_for(f"{name}: reading from the Hub"):
        from datasets import load_dataset  # slow to import
    dataset, _, config = name.partition(":")
    try:
        splits: Mapping[str, Any] = load_dataset(dataset, config or None)
    except (OSError, ValueError) as error:
        raise RemoteError(
            f"{name}: no such file or folder; loading from the Hub failed ({one_line(str(error), 200)});"
            " check name and network"
        ) from error
    return splits


def fetch_model(
    name: str,
    revision: str | None,
    files: Sequence[str],
    *,
    called: str,
    instead: str,
) -> Path:
    """The folder of a model from the Hub, downloaded unless it is cached."""
    from huggingface_hub import errors, snapshot_download

    options: dict[str, Any] = {"allow_patterns": [*files], "ignore_patterns": _IGNORED}
    try:
        return Path(snapshot_download(name, revision=revision, **options))
    except errors.GatedRepoError as error:
        raise AuthError(
            f"{called}: accept its terms on the Hub and set HF_TOKEN to your token"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ConfigError(
            f"{called}: no such folder or model on the Hub (a private model needs HF_TOKEN)"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"{called}: has no revision {revision!r}") from error
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
        raise RemoteError(
            f"{called}: no such folder, and the Hub could not be reached; check name and network, or"
            f" {instead}"
        ) from error
