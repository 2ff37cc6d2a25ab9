"""A model as a function from texts to vectors, given in Python or named `python:package.module:function`.

Naming a function runs its module's code. So only a person may, by `--model` or from Python; a settings file
can't, as what it names is looked for among folders and on the Hub.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from aoe_train.settings.prompts import NamedPrompts, written_out
from aoe_train.settings.training import Similarity
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

Function = Callable[[list[str]], Any]
"""From a list of texts to an array (text, dim)."""
OWN = "python:"
_EXPECTED = "expected python:package.module:function, such as python:my_models:embed"


class FunctionEmbedder:
    """A function to be judged; see `Embedder`. Without an identity its vectors are not kept on disk."""

    separator = "\n"
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"
    device = "cpu"

    def __init__(self, function: Function, name: str = "", identity: str = "") -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.identity = identity
        self._function = function

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim); a prompt is given as part of the texts."""
        given = [written_out(prompt, text) for text in texts] if prompt else list(texts)
        try:
            found = np.asarray(self._function(given), np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{self.name}: {one_line(str(error), 200)}") from error
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise DataError(
                f"{self.name}: gave an array of shape {found.shape} for {len(texts)} texts; expected a row of"
                " finite numbers for each"
            )
        return found


def imported_model(name: str) -> FunctionEmbedder:
    """The function of that name; its vectors are known by its module's source."""
    function = _imported(name)
    return FunctionEmbedder(
        function, name, hashlib.sha256(f"{name}\n{_source(function)}".encode()).hexdigest()
    )


def _imported(name: str) -> Function:
    module, _, attribute = name.removeprefix(OWN).partition(":")
    if not module or not attribute:
        raise ConfigError(f"--model {name}: {_EXPECTED}")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"--model {name}: {one_line(str(error), 200)}; {_EXPECTED}, with its folder in PYTHONPATH"
        ) from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ConfigError(f"--model {name}: {module} has no function {attribute}")
    function: Function = found
    return function


def _source(function: object) -> str:
    """The text of the function's module, so that vectors kept of an older one are not taken for its own."""
    try:
        module = inspect.getmodule(function)
        return "" if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return ""
