"""What decides a run's result, in values that can be compared: settings, data, backbone, processes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairkit import __version__
from pairkit.system.files import sha256

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from aoe_train.records import Examples
    from aoe_train.settings.training import EncoderSettings, TrainSettings
    from pairkit.dataset.in_memory import Source

# Of a configuration, what says where it came from.
_ABOUT = ("_name_or_path", "transformers_version", "architectures")


def origin(
    settings: TrainSettings,
    *,
    data: Mapping[str, Examples],
    dev_data: Mapping[str, Examples],
    backbone: str,
    tokenizer: str,
    prompts: EncoderSettings,
    precision: str,
    processes: int,
    own: Mapping[str, str] | None = None,
    advisers: Mapping[str, Any] | None = None,
    judged: str | None = None,
) -> dict[str, Any]:
    """The settings but for those that only tell or keep or say where rows lie, and hashes of what goes in.

    `data` and `dev_data` are the rows of each dataset and dev set; a single one's name says nothing.
    `prompts` are those that the backbone's folder knows, with what was given for the encoder.
    `own` are the names of losses of one's own, by dataset. `advisers` are the identities of a guide and a
    teacher, by which they are known instead of their names. `judged` is a hash of the pairs that decide
    whether the model is kept.
    """
    hashed, held_out = (
        {name: hash_examples(rows) for name, rows in rows_of.items()} for rows_of in (data, dev_data)
    )
    alone = len(hashed) == 1
    named = {"guide": {"model", "revision"}, "teacher": {"model", "revision", "scores"}}
    settled = settings.model_dump(
        mode="json", exclude={"log": True, "card": True, "data": {"streaming"}, **named}
    )
    for section in settled["datasets"].values():  # where rows are found decides nothing
        section.pop("data"), section.pop("dev_data")
    return {
        **({"objective": next(iter(own.values())) if alone else dict(own)} if own else {}),
        **(advisers or {}),
        **({} if judged is None else {"judged": judged}),
        "settings": settled,
        "data": next(iter(hashed.values())) if alone else hashed,
        "dev_data": (next(iter(held_out.values()), None) if len(held_out) < 2 else held_out),
        "backbone": backbone,
        "tokenizer": tokenizer,
        "prompts": prompts.model_dump(include={"prompts", "default_prompt_name", "include_prompt"}),
        "precision": precision,
        "processes": processes,
    }


def hash_examples(examples: Examples) -> str:
    """SHA-256 of texts, rows and labels, whatever file they came in."""
    digest = hashlib.sha256(examples.kind.encode())
    for text in examples.texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    for array in (examples.rows, examples.labels):
        if array is not None:
            digest.update(np.ascontiguousarray(array).reshape(-1).data)  # no copy, as it may lie on disk
    return digest.hexdigest()


def hash_weights(model: nn.Module) -> str:
    """SHA-256 of a model's weights, wherever they were loaded from."""
    import torch  # who asks for `versions` alone need not wait for it

    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def hash_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of all that says how a text becomes tokens.

    How long texts are cut and padded is left out: it is set anew by each that tokenises.
    """
    parts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    lasting = {key: value for key, value in parts.items() if key not in ("truncation", "padding")}
    return hashlib.sha256(json.dumps(lasting).encode()).hexdigest()


def hash_config(config: PretrainedConfig) -> str:
    """SHA-256 of what says how a backbone computes, and not of where it came from."""
    parts = {key: value for key, value in config.to_dict().items() if key not in _ABOUT}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def hash_files(source: Source | None) -> dict[str, str]:
    """SHA-256 of a data source's files by name; none for a dataset of the Hub or rows in memory."""
    if not isinstance(source, str | Path):
        return {}
    from pairkit.dataset.parts import files_of  # brings polars, which encoding does without

    files = files_of(source)
    home = (
        source if Path(source).is_dir() else os.path.commonpath([str(file.parent) for file in files] or ["."])
    )
    return {str(file.relative_to(home)): sha256(file) for file in files}


def versions() -> dict[str, str]:
    """The programs that made a model."""
    libraries = {name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")}
    return {"aoe-toolkit": __version__, "python": platform.python_version(), **libraries}
