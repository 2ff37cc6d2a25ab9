"""adapter_config.json: what peft would do because of it.

peft has dozens of kinds of adapters and of ways to begin them. Some import modules by name, others match
regular expressions of the file's or copy layers. Only plain low-rank adapters, as `aoe train` and most others
make them, are taken; a setting that is not on the list may stand there if it is off.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from aoe_train._model_folder.files import Foreign, decode, read_object
from pairkit.errors import ConfigError

ADAPTERS_FILE = "adapter_config.json"
_OFF: tuple[Any, ...] = (None, False, {}, [], "")
# What peft writes for settings that are nothing without another one.
_DEFAULTS = {"megatron_core": "megatron.core", "qalora_group_size": 16}

Name = Annotated[str, Field(pattern=r"^[\w.-]{1,200}$")]
Rank = Annotated[int, Field(ge=1, le=4096)]
Scale = Annotated[float, Field(ge=0, le=1e6)]


class _Origin(Foreign):
    """Where the class of the base came from; nobody imports it here."""

    base_model_class: Name
    parent_library: Name
    unsloth_fixed: bool = False


class _Adapters(Foreign):
    """What may be set."""

    peft_type: Literal["LORA"]
    base_model_name_or_path: str = ""
    revision: str | None = None
    task_type: Literal["FEATURE_EXTRACTION", "CAUSAL_LM", "SEQ_CLS", "TOKEN_CLS"] | None = None
    auto_mapping: _Origin | None = None
    peft_version: str = ""
    inference_mode: bool = False
    r: Rank = 8
    lora_alpha: Scale = 8
    lora_dropout: Annotated[float, Field(ge=0, le=1)] = 0
    bias: Literal["none", "all", "lora_only"] = "none"
    fan_in_fan_out: bool = False
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    init_lora_weights: Literal[True, False, "gaussian"] = True
    target_modules: list[Name] | Name | None = None
    rank_pattern: dict[Name, Rank] = Field(default_factory=dict)
    alpha_pattern: dict[Name, Scale] = Field(default_factory=dict)
    layers_to_transform: list[int] | int | None = None
    layers_pattern: list[Name] | Name | None = None


def check_adapters(folder: Path) -> None:
    """Refuse adapters of another kind, or with settings that run or repeat something.

    Raises:
        ConfigError: A setting that is not on the list is on.
        DataError: A value of another type or out of its range.
    """
    path = folder / ADAPTERS_FILE
    if not path.is_file():
        return
    found = read_object(path)
    known = {
        key: value for key, value in found.items() if key in _Adapters.model_fields and value is not None
    }
    for key, value in found.items():
        if key not in _Adapters.model_fields and not _is_off(key, value):
            raise ConfigError(
                f"{path}: {key} is set; only plain low-rank adapters are taken; merge these into their base"
            )
    _plain_names(path, known)
    decode(_Adapters, known, path, "only plain low-rank adapters are taken")


def _is_off(key: str, value: Any) -> bool:
    return any(value is off or (value == off and isinstance(value, (dict, list, str))) for off in _OFF) or (
        key in _DEFAULTS and value == _DEFAULTS[key]
    )


def _plain_names(path: Path, found: dict[str, Any]) -> None:
    """Names are matched as regular expressions, where a text may."""
    named = found.get("target_modules")
    if isinstance(named, str) and named != "all-linear" and not re.fullmatch(r"[\w.]+", named):
        raise ConfigError(
            f"{path}: target_modules is the pattern {named[:60]!r}; list the names of the layers instead"
        )
