"""An encoder's settings in model folders, in our format and in sentence-transformers'.

aoe-toolkit writes `aoe.json` into its model folders; other folders are read as sentence-transformers models.
sentence-transformers' modules can express almost all models, so a reader needs this package only for the
exceptions in `needs_toolkit`. A single prompt with words after the text is put into the tokenizer's template.
Names of modules and keys are the old ones, which old and new releases accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from aoe_train.model.folder_checks import (
    ADAPTERS_FILE,
    KINDS,
    MODEL_FILE,
    DenseConfig,
    Listed,
    Model,
    PoolingConfig,
    TransformerConfig,
    decode,
    read_json,
    read_modules,
    read_object,
)
from aoe_train.model.text_model import DenseLayers, dense_names, read_dense_layers
from aoe_train.settings.train_settings import (
    DEFAULT,
    PLACE,
    EncoderSettings,
    Tree,
    read_prompt,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.settings import load_settings
from pairkit.base.system.files import write_bytes, write_json, write_text

if TYPE_CHECKING:
    from jaxtyping import Float
    from transformers import PreTrainedModel

SETTINGS_FILE = "aoe.json"
_FORMAT = 1
# Tokenizers without a limit have 10^30.
_UNLIMITED = 10**9
OUR_MODULE = "aoe_train.exporting.module.ToolkitEncoder"
_MODES = {
    "cls": ["cls_token"],
    "cls-avg": ["cls_token", "mean_tokens"],
    "avg": ["mean_tokens"],
    "first-last-avg": ["mean_tokens"],
    "max": ["max_tokens"],
    "last": ["lasttoken"],
    "weighted-mean": ["weightedmean_tokens"],
}


def _short_mode(mode: str) -> str:
    """The name of a mode in new releases, which leave out "_token" and "_tokens"."""
    return mode.removesuffix("_token").removesuffix("_tokens")


_POOLING_OF_MODE = {
    _short_mode(mode): pooling
    for pooling, (mode, *more) in _MODES.items()
    if not more and pooling != "first-last-avg"
}


def store_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write `aoe.json` into a model folder."""
    write_json(folder / SETTINGS_FILE, {"format": _FORMAT, **settings.model_dump()})


def stored_settings(folder: Path) -> Tree:
    """The settings in a model folder, by name; raises DataError or ConfigError if they can't be used."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return read_sentence_transformers(folder)
    stored = read_object(path)
    if stored.pop("format", None) != _FORMAT:
        raise DataError(
            f"not format {_FORMAT}; use the release of aoe-toolkit that wrote it",
            path=path,
        )
    words = stored.pop("prompt", None)
    if words is not None:  # older folders have one prompt without a name
        stored |= {"prompts": {DEFAULT: words}, "default_prompt_name": DEFAULT}
    try:
        return load_settings(EncoderSettings, below=stored).model_dump()
    except ConfigError as error:
        raise DataError(f"{error}; copy the model again", path=path) from error


def with_overrides(
    stored: Mapping[str, Any], overrides: Mapping[str, Any]
) -> EncoderSettings:
    """The model's settings with those that the caller overrides; prompts are added, not replaced."""
    changes = {key: value for key, value in overrides.items() if value is not None}
    prompts = changes.get("prompts")
    if isinstance(prompts, Mapping):
        changes["prompts"] = {**stored.get("prompts", {}), **prompts}
    return load_settings(EncoderSettings, flags={**stored, **changes})


def stored_dense_layers(
    folder: Path,
    stored: Mapping[str, Any],
    settings: EncoderSettings,
    backbone: PreTrainedModel,
) -> DenseLayers | None:
    """The dense layers in a model folder; raises ConfigError if `settings` request others."""
    if not stored.get("dense"):
        return None
    layers = EncoderSettings(dense=stored["dense"]).dense
    if layers != settings.dense:
        raise ConfigError(
            f"{folder}: has its own dense layers; leave encoder.dense out"
        )
    if (folder / SETTINGS_FILE).is_file():
        folders = [folder / name for name in dense_names(len(layers))]
    else:
        modules = read_modules(folder)
        folders = [
            folder / module.path for module in modules if _class_name(module) == "Dense"
        ]
    return read_dense_layers(folders, layers, int(backbone.config.hidden_size))


@dataclass(frozen=True)
class _Module:
    """A module of sentence-transformers; its `path` is set if its files exist already."""

    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, ndarray] = field(default_factory=dict)
    path: str | None = None


def needs_toolkit(folder: Path, settings: EncoderSettings) -> str | None:
    """Why sentence-transformers can't run this model without aoe-toolkit; None if it can."""
    if is_ran(folder):
        return "its backbone is a Recurrent Attention Network, which transformers doesn't have"
    needs_backbone = (
        settings.bidirectional
        or settings.layers
        or settings.pooling == "first-last-avg"
    )
    if needs_backbone and (folder / ADAPTERS_FILE).exists():
        return "its folder contains only adapters"
    prompts = settings.named_prompts
    if prompts.after_text is not None and prompts.around_all is None:
        return f"its prompt {prompts.after_text!r} has words after the text, and it has other prompts"
    return None


def is_ran(folder: Path) -> bool:
    """Whether a model's backbone is a Recurrent Attention Network."""
    return read_object(folder / "config.json").get("model_type") == "ran"


def write_sentence_transformers(
    folder: Path, settings: EncoderSettings, dim: int
) -> None:
    """Add the files with which sentence-transformers gives the same vectors, other than dense layers'."""
    requirements = {}
    has_toolkit = needs_toolkit(folder, settings) is not None
    if has_toolkit:
        modules = [_Module(OUR_MODULE)]
        reason = "The model's code is in this package."
        requirements["aoe-toolkit"] = {"specifier": ">=0.1", "reason": reason}
    else:
        modules = [_Module("Transformer"), *_pooling_modules(folder, settings, dim)]
        modules += [
            _Module("Dense", path=name) for name in dense_names(len(settings.dense))
        ]
        transformer: dict[str, Any] = {"do_lower_case": False}
        if settings.max_length is not None:
            transformer["max_seq_length"] = settings.max_length
        if settings.pooling == "first-last-avg":
            transformer["config_args"] = {"output_hidden_states": True}
        write_json(folder / "sentence_bert_config.json", transformer)
    if settings.bidirectional:
        reason = "Older releases mask later tokens without a warning."
        requirements["transformers"] = {"specifier": ">=5.2", "reason": reason}
    if settings.normalize:
        modules.append(_Module("Normalize"))
    _write_modules(folder, modules)
    model: dict[str, Any] = {
        "prompts": _prompts_before_texts(settings, has_toolkit=has_toolkit),
        "default_prompt_name": settings.default_prompt_name,
        "similarity_fn_name": settings.similarity_fn_name,
        "requirements": requirements,
    }
    if settings.dim is not None:
        model["truncate_dim"] = settings.dim
    write_json(folder / MODEL_FILE, model)


def write_static(
    folder: Path, tokenizer: str, table: Float[ndarray, "token dim"]
) -> None:
    """Write a static model: a text's vector is the mean of its tokens' vectors, scaled to length 1."""
    write_text(folder / "tokenizer.json", tokenizer)
    weights = {"embedding.weight": np.ascontiguousarray(table)}
    _write_modules(
        folder, [_Module("StaticEmbedding", weights=weights), _Module("Normalize")]
    )
    write_json(
        folder / MODEL_FILE,
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )


def _prompts_before_texts(
    settings: EncoderSettings, *, has_toolkit: bool
) -> dict[str, str]:
    """The prompts that sentence-transformers has to put before texts, by name."""
    prompts = settings.named_prompts
    if has_toolkit:
        return prompts.known if prompts.after_text else dict(prompts.prompts)
    if prompts.around_all is not None:
        return dict.fromkeys(prompts.prompts, "")
    return {name: read_prompt(words).before for name, words in prompts.prompts.items()}


def read_sentence_transformers(folder: Path) -> Tree:
    """The encoder settings of a sentence-transformers folder; raises ConfigError for unknown modules."""
    modules = read_modules(folder)
    if not modules or modules[0].type == OUR_MODULE:
        return {}
    kinds = [_class_name(module) for module in modules]
    static = kinds[0] == "StaticEmbedding"
    first = ["StaticEmbedding"] if static else ["Transformer", "Pooling"]
    expected = [*first, *["Dense"] * kinds.count("Dense"), "Normalize"]
    if kinds not in (expected, expected[:-1]):
        other = [kind for kind in kinds if kind not in expected]
        advice = f"; use sentence-transformers for {other[0]}" if other else ""
        raise ConfigError(
            f"{folder}: its sentence-transformers modules are {', '.join(kinds)}; expected Transformer and"
            f" Pooling, or StaticEmbedding, optionally followed by Dense layers and Normalize{advice}"
        )
    paths = [folder / module.path for module in modules]
    if static:
        settings = _read_static(paths[0])
    else:
        settings = _read_pooling(paths[1]) | _read_transformer(paths[0])
    settings["dense"] = [
        _read_dense(path)
        for path, kind in zip(paths, kinds, strict=True)
        if kind == "Dense"
    ]
    settings["normalize"] = "Normalize" in kinds
    return settings | _read_model(folder)


def _class_name(module: Listed) -> str:
    """The class of a module without its package, if it is known here."""
    return KINDS.get(module.type) or one_line(module.type)


def _read_model(folder: Path) -> Tree:
    path = folder / MODEL_FILE
    model = decode(Model, read_object(path), path)
    for name, words in (model.prompts or {}).items():
        if PLACE in words:
            raise ConfigError(
                f"{path}: the prompt {one_line(name, 80)!r} contains {PLACE}, which sentence-transformers"
                " takes literally, but which is replaced by the text here; remove it"
            )
    stored = {
        "prompts": model.prompts,
        "default_prompt_name": model.default_prompt_name,
        "similarity_fn_name": model.similarity_fn_name,
        "dim": model.truncate_dim,
    }
    return {name: value for name, value in stored.items() if value}


def _pooling_modules(
    folder: Path, settings: EncoderSettings, dim: int
) -> list[_Module]:
    """The modules of a pooling: a Dense layer averages two poolings, WeightedLayerPooling two layers."""
    pooling = settings.pooling
    modes = _MODES[pooling]
    flags = {
        f"pooling_mode_{mode}": mode in modes
        for names in _MODES.values()
        for mode in names
    }
    shape = {"word_embedding_dimension": dim, "include_prompt": settings.include_prompt}
    modules = [_Module("Pooling", {**shape, **flags})]
    if len(modes) == 2:
        half = np.hstack([np.eye(dim, dtype=np.float32)] * 2) / 2
        config = {
            "in_features": 2 * dim,
            "out_features": dim,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
        modules.append(_Module("Dense", config, {"linear.weight": half}))
    if pooling == "first-last-avg":
        from transformers import AutoConfig

        # The number of layers has another name in config.json of some architectures, which AutoConfig knows.
        backbone = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        layers = int(backbone.num_hidden_layers)
        # The first weight is that of the embedding layer.
        weights = np.zeros(layers + 1, dtype=np.float32)
        weights[[1, layers]] = 1
        shape = {
            "word_embedding_dimension": dim,
            "num_hidden_layers": layers,
            "layer_start": 0,
        }
        modules.insert(
            0, _Module("WeightedLayerPooling", shape, {"layer_weights": weights})
        )
    return modules


def _write_modules(folder: Path, modules: list[_Module]) -> None:
    """Write modules.json, and the folder of each module whose files don't exist already."""
    from safetensors.numpy import save

    listed = []
    for number, module in enumerate(modules):
        path = module.path or (f"{number}_{module.kind}" if number else "")
        kind = module.kind
        if kind != OUR_MODULE:
            kind = f"sentence_transformers.models.{kind}"
        listed.append({"idx": number, "name": str(number), "path": path, "type": kind})
        if number and module.path is None:
            write_json(folder / path / "config.json", module.config)
        if module.weights:
            write_bytes(folder / path / "model.safetensors", save(module.weights))
    write_json(folder / "modules.json", listed)


def _read_dense(folder: Path) -> Tree:
    path = folder / "config.json"
    dense = decode(DenseConfig, read_json(path), path)
    for name in (dense.module_input_name, dense.module_output_name):
        if name not in (None, "sentence_embedding"):
            raise ConfigError(
                f"{folder}: a Dense layer on {one_line(name, 80)}; expected sentence_embedding"
            )
    _, _, activation = dense.activation_function.rpartition(".")
    return {
        "size": dense.out_features,
        "activation": activation.lower(),
        "bias": dense.bias,
        "residual": dense.use_residual,
    }


def _read_pooling(folder: Path) -> Tree:
    path = folder / "config.json"
    config = decode(PoolingConfig, read_json(path), path)
    modes = config.modes
    mode = _short_mode(",".join(modes))
    if mode not in _POOLING_OF_MODE:
        raise ConfigError(
            f"{path}: pooling {modes}; expected one of {', '.join(_POOLING_OF_MODE)}"
        )
    pooling = _POOLING_OF_MODE[mode]
    return {"pooling": pooling, "include_prompt": config.include_prompt}


def _read_static(folder: Path) -> Tree:
    """The settings of a static model, whose tokenizer may truncate texts."""
    path = folder / "tokenizer.json"
    cut = read_object(path).get("truncation")
    if cut is None:
        return {"pooling": "avg"}
    length = cut.get("max_length") if isinstance(cut, dict) else None
    if (
        not isinstance(length, int)
        or length < 1
        or cut.get("direction", "Right") != "Right"
    ):
        raise ConfigError(
            f"{path}: truncation {one_line(str(cut), 80)}; expected truncation on the right"
        )
    return {"pooling": "avg", "max_length": length}


def _read_transformer(folder: Path) -> Tree:
    path = folder / "sentence_bert_config.json"
    # Older releases named the file after the architecture.
    path = min(folder.glob("sentence_*_config.json"), default=path)
    config = decode(TransformerConfig, read_object(path), path)
    if config.transformer_task != "feature-extraction":
        raise ConfigError(
            f"{folder}: its transformer's task is {one_line(config.transformer_task)}; expected"
            " feature-extraction"
        )
    length = config.max_seq_length
    if not length:  # new releases store it in the tokenizer's settings
        limit = _positive_number(folder / "tokenizer_config.json", "model_max_length")
        if limit < _UNLIMITED:
            positions = folder / "config.json", "max_position_embeddings"
            length = min(limit, _positive_number(*positions))
    stored = {"max_length": length, "do_lower_case": config.do_lower_case}
    return {name: value for name, value in stored.items() if value}


def _positive_number(path: Path, key: str) -> int:
    """A positive number in a file; `_UNLIMITED` if it is missing or larger. Raises DataError for others."""
    value = read_object(path).get(key)
    if value is None or (isinstance(value, (int, float)) and value >= _UNLIMITED):
        return _UNLIMITED
    if not isinstance(value, int) or value < 1:
        raise DataError(
            f"{key} = {str(value)[:20]!r}: expected a positive number", path=path
        )
    return value
