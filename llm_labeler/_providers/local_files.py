"""The folder of a model that runs here: found or fetched, and nothing in it that runs code unasked."""

from __future__ import annotations

import json
import re
from pathlib import Path

from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError, DataError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# Tokenizer, configuration, templates and safetensors; neither pickled weights nor other frameworks'.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]


def check_source(name: str, settings: LlmSettings) -> None:
    """See that an entry names a model, and code only at a commit; nothing is looked up.

    Raises:
        ConfigError: it does not; names the entry.
    """
    model = settings.model
    if not model:
        raise ConfigError(f"llm.{name}: no model; set `model` to a folder or a Hub id")
    if Path(model).is_dir():
        return
    if Path(model).exists():
        raise ConfigError(f"llm.{name}: {model} is a file; expected a model's folder or a Hub id")
    if model.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(model):
        raise ConfigError(f"llm.{name}: {model}: no such folder; expected a model's folder or a Hub id")
    if settings.trust_remote_code and not _COMMIT.fullmatch(settings.revision or ""):
        raise ConfigError(
            f"llm.{name}: trust_remote_code runs the model's own code; set `revision` to the commit that you "
            "have read (40 hexadecimal digits)"
        )


def find_folder(name: str, settings: LlmSettings) -> Path:
    """The model's folder, fetched first where `model` is a Hub id.

    Raises:
        ConfigError: no such model or revision, no safetensors in it, code of another repository.
        RemoteError: the Hub can't be reached; AuthError where it wants a token.
    """
    check_source(name, settings)
    local = Path(settings.model)
    folder = local if local.is_dir() else _fetch(name, settings)
    _check_weights(name, folder)
    if settings.trust_remote_code:
        _check_code(name, folder)
    return folder


def _fetch(name: str, settings: LlmSettings) -> Path:
    from pairkit.hub import fetch_model

    model, wanted = settings.model, _WANTED + (["*.py"] if settings.trust_remote_code else [])
    called = f"llm.{name}: {model}"
    return fetch_model(model, settings.revision, wanted, called=called, instead="set `model` to a folder")


def _check_weights(name: str, folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"llm.{name}: {folder}: no config.json; expected the folder of a transformers model"
        )
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    raise ConfigError(
        f"llm.{name}: {folder}: weights only as {pickled[0]}, a pickle, which can run code when loaded; "
        "convert it to model.safetensors if you trust it"
        if pickled
        else f"llm.{name}: {folder}: no weights; expected model.safetensors"
    )


def _check_code(name: str, folder: Path) -> None:
    """Refuse code of another repository, which no pinned commit covers."""
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        if not path.is_file():
            continue
        try:
            named = json.dumps(json.loads(path.read_text(encoding="utf-8")).get("auto_map"))
        except (OSError, ValueError, AttributeError) as error:
            raise DataError(f"not readable as a JSON object ({error}); fetch it again", path=path) from error
        if "--" in named:  # how transformers parts the repository from the class
            raise ConfigError(
                f"llm.{name}: {path}: its code is in another repository, which `revision` does not pin; copy "
                "the code that you have read into the folder, and name it there without the repository"
            )
