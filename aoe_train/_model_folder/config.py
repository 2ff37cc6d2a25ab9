"""config.json: what transformers would do because of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoe_train._model_folder.files import read_object
from pairkit.errors import ConfigError, DataError

# Of implementations ("attn_implementation", "experts_implementation"): anything with a slash is a repository
# of kernels, which transformers would fetch and run.
_IMPLEMENTATIONS = {
    *("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention"),
    *("grouped_mm", "batched_mm"),
}
# Other quantisers fetch kernels, or need training data; these weights are plain tensors with their scales.
_QUANTISERS = {"bitsandbytes"}
_KERNELS = ("use_kernels", "kernel_config")
# Counts that a network is built by, part by part, before anybody looks at the weights, and the most that is
# sensible: Doge is published with 16,384 experts. Widths may be larger; `check_size` holds them to weights.
_COUNTED = {"expert": 1 << 15, "layer": 4096, "block": 4096, "depth": 4096, "stage": 4096}
_WIDTHS = {"size", "dim"}


def check_config(folder: Path) -> None:
    """Refuse a configuration that fetches code, or describes a network without end.

    Raises:
        ConfigError: It names kernels, another file of weights, or a quantiser that is not known here.
        DataError: No JSON object, or thousands of layers.
    """
    path = folder / "config.json"
    config = read_object(path)
    for key, value in _settings(config):
        if "_implementation" in key and isinstance(value, str) and value not in _IMPLEMENTATIONS:
            raise ConfigError(
                f"{path}: {key} = {value!r} would fetch code and run it; take the line out, or have one of"
                f" {', '.join(sorted(_IMPLEMENTATIONS))}"
            )
        if key in _KERNELS and value:
            raise ConfigError(f"{path}: {key} would fetch code and run it; take the line out")
        if key in ("quantization_config", "compression_config"):
            _check_quantiser(path, value)
        if isinstance(value, int) and (most := _most(key)) is not None and value > most:
            raise DataError(f"{key} = {str(value)[:20]}: expected at most {most}", path=path)
    weights = config.get("transformers_weights")
    if weights is not None:
        raise ConfigError(
            f"{path}: transformers_weights names {weights!r}; rename that file to model.safetensors"
        )


def _most(key: str) -> int | None:
    """The largest sensible value of a count; None for what is no count."""
    if _WIDTHS & set(key.split("_")):
        return None
    return next((most for word, most in _COUNTED.items() if word in key), None)


def _check_quantiser(path: Path, value: Any) -> None:
    named = value if isinstance(value, dict) else {}
    implied = "bitsandbytes" if named.get("load_in_4bit") or named.get("load_in_8bit") else None
    method = named.get("quant_method", implied)
    if value and method not in _QUANTISERS:
        raise ConfigError(
            f"{path}: weights quantised by {method!r}; expected {', '.join(_QUANTISERS)}, or a model that is"
            " not quantised"
        )


def _settings(tree: Any) -> Iterator[tuple[str, Any]]:
    """All keys at any depth with their values; an entry of a list or table counts under its list's key."""
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting:
        above, value = waiting.pop()
        if isinstance(value, dict):
            named = above if "_implementation" in above else ""
            waiting += [(named or str(key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(above, item) for item in value]
        yield above, value
