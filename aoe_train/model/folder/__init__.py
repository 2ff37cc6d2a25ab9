"""Model folders of others: checked before a library opens them, so that no code of theirs runs.

Here: config.json and adapter_config.json, settings for which transformers or peft would run code. `modules`:
modules.json of sentence-transformers. Weights are read from safetensors only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoe_train.model.folder.files import read_object
from pairkit.app.errors import ConfigError

ADAPTERS_FILE = "adapter_config.json"
# Any other name may be a repository of kernels, which transformers would fetch and run.
_IMPLEMENTATIONS = {
    *("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention"),
    *("grouped_mm", "batched_mm"),
}
_KERNELS = ("use_kernels", "kernel_config")
_QUANTISERS = (None, "bitsandbytes")  # others fetch kernels, or need training data
# Settings of plain low-rank adapters. Others import modules by name; they may be present if they are off.
_LORA = {
    *("peft_type", "base_model_name_or_path", "revision", "task_type", "auto_mapping", "peft_version"),
    *("inference_mode", "r", "lora_alpha", "lora_dropout", "bias", "fan_in_fan_out", "use_rslora"),
    *("use_dora", "lora_bias", "init_lora_weights", "target_modules", "rank_pattern", "alpha_pattern"),
    *("layers_to_transform", "layers_pattern"),
}
_OFF: tuple[Any, ...] = (None, False, {}, [], "")
_DEFAULTS = {"megatron_core": "megatron.core", "qalora_group_size": 16}  # written by peft, unused alone


def check_settings(folder: Path) -> None:
    """Refuse settings for which a library would run code."""
    path = folder / "config.json"
    for key, value in _settings(read_object(path)):
        if "_implementation" in key and isinstance(value, str) and value not in _IMPLEMENTATIONS:
            raise ConfigError(
                f"{path}: {key} = {value!r} would fetch code and run it; take the line out, or have one of"
                f" {', '.join(sorted(_IMPLEMENTATIONS))}"
            )
        if key in _KERNELS and value:
            raise ConfigError(f"{path}: {key} would fetch code and run it; take the line out")
        if key in ("quantization_config", "compression_config") and isinstance(value, dict):
            method = value.get("quant_method")
            if method not in _QUANTISERS:
                raise ConfigError(f"{path}: weights quantised by {method!r}; expected bitsandbytes, or none")
    _check_adapters(folder / ADAPTERS_FILE)
    read_object(folder / "tokenizer_config.json")


def _check_adapters(path: Path) -> None:
    found = read_object(path)
    known = {key: value for key, value in found.items() if key in _LORA}
    for key, value in found.items():
        off = any(value is none or (value == none and type(value) is type(none)) for none in _OFF)
        if key not in _LORA and not off and _DEFAULTS.get(key) != value:
            raise ConfigError(
                f"{path}: {key} is set; only plain low-rank adapters are taken; merge these into their base"
            )
    if found and known.get("peft_type") != "LORA":
        kind = known.get("peft_type")
        raise ConfigError(f"{path}: peft_type = {str(kind)[:60]!r}; only plain low-rank adapters are taken")


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
