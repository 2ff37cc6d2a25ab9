"""Model folders of others, checked before a library opens them, so that no code of theirs runs.

Checked are config.json, adapter_config.json and modules.json: settings for which transformers, peft or
sentence-transformers would run code. Weights are read from safetensors only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    import numpy as np


_REMEDY = "copy or download the model again"


class Foreign(BaseModel):
    """Base of untrusted JSON: exact types, and only listed keys."""

    # A run needs few of these, and to build them all takes a tenth of a second.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


F = TypeVar("F", bound=BaseModel)


def read_json(path: Path, remedy: str = _REMEDY) -> Any:
    """What a file of JSON holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error}); {remedy}", path=path) from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one where there is no file."""
    if not path.is_file():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise DataError(f"expected a JSON object; {_REMEDY}", path=path)
    return found


def mapped_array(path: Path, remedy: str = _REMEDY) -> np.ndarray:
    """The array that a .npy file holds, mapped from the disk."""
    from numpy.lib.format import open_memmap

    try:
        found: np.ndarray = open_memmap(path, mode="r")
    except Exception as error:  # numpy reads a header as Python's own words
        raise DataError(f"not readable ({one_line(str(error))}); {remedy}", path=path) from error
    return found


def decode(model: type[F], values: Any, path: Path, remedy: str = _REMEDY) -> F:
    """What was read from `path` as a record of the kind `model`."""
    try:
        return model.model_validate(values)
    except UnicodeEncodeError as error:
        raise DataError(f"holds half a surrogate pair; {remedy}", path=path) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        what = "is not known here" if first["type"] == "extra_forbidden" else first["msg"]
        shown = repr(first["input"])[:60]
        raise DataError(f"{key} = {shown}: {what[:1].lower()}{what[1:]}; {remedy}", path=path) from error


MODULES_FILE = "modules.json"
MODEL_FILE = "config_sentence_transformers.json"
_MOST_MODULES = 16
_SIZE = 1 << 20

# A class has had several homes; each name is written out, so that nothing else in the library can be named.
_PLACES = {
    "Transformer": "base.modules.transformer",
    "Dense": "base.modules.dense",
    "Normalize": "base.modules.normalize",
    "Pooling": "sentence_transformer.modules.pooling",
    "LayerNorm": "sentence_transformer.modules.layer_norm",
    "Dropout": "sentence_transformer.modules.dropout",
    "StaticEmbedding": "sentence_transformer.modules.static_embedding",
    "WeightedLayerPooling": "sentence_transformer.modules.weighted_layer_pooling",
}
KINDS = {
    f"sentence_transformers.{home}.{kind}": kind
    for kind, place in _PLACES.items()
    for home in ("models", f"models.{kind}", place, place.rpartition(".")[0], "sentence_transformer.modules")
}

Size = Annotated[int, Field(ge=1, le=_SIZE)]
Length = Annotated[int, Field(ge=1, le=1 << 40)]
Key = Annotated[str, Field(pattern=r"^[\w.+-]{1,80}$")]
_ACTIVATIONS = Literal[
    "torch.nn.modules.linear.Identity",
    "torch.nn.modules.activation.ELU",
    "torch.nn.modules.activation.GELU",
    "torch.nn.modules.activation.LeakyReLU",
    "torch.nn.modules.activation.Mish",
    "torch.nn.modules.activation.ReLU",
    "torch.nn.modules.activation.ReLU6",
    "torch.nn.modules.activation.SELU",
    "torch.nn.modules.activation.SiLU",
    "torch.nn.modules.activation.Sigmoid",
    "torch.nn.modules.activation.Softplus",
    "torch.nn.modules.activation.Tanh",
]


class Listed(Foreign):
    """One entry of modules.json."""

    type: Annotated[str, Field(max_length=200)]
    path: Annotated[str, Field(pattern=r"^(\.|[\w-]{0,80})$")] = ""  # of Model2Vec "."
    idx: int = 0
    name: Key = "0"
    kwargs: list[Key] = Field(default_factory=list)


class _Options(Foreign):
    """What may be handed on to transformers."""

    output_hidden_states: bool = False
    attn_implementation: Literal["eager", "sdpa", None] = None
    dtype: Literal["auto", "float32", "float16", "bfloat16", None] = None
    torch_dtype: Literal["auto", "float32", "float16", "bfloat16", None] = None
    add_pooling_layer: bool = False
    model_max_length: Length | None = None
    padding_side: Literal["left", "right"] = "right"
    truncation_side: Literal["left", "right"] = "right"


class _Modality(Foreign):
    method: Literal["forward"] = "forward"
    method_output_name: Literal["last_hidden_state", None] = None


class TransformerConfig(Foreign):
    """sentence_bert_config.json."""

    max_seq_length: Length | None = None
    do_lower_case: bool = False
    transformer_task: str = "feature-extraction"
    modality_config: dict[Literal["text"], _Modality] = Field(default_factory=dict)
    module_output_name: Literal["token_embeddings", None] = None
    unpad_inputs: bool | None = None
    processing_kwargs: dict[str, Any] = Field(default_factory=dict, max_length=0)
    model_args: _Options = _Options()
    model_kwargs: _Options = _Options()
    tokenizer_args: _Options = _Options()
    processor_kwargs: _Options = _Options()
    config_args: _Options = _Options()
    config_kwargs: _Options = _Options()


class PoolingConfig(Foreign):
    """config.json of a pooling; older releases have a flag for each way."""

    word_embedding_dimension: Size | None = None
    embedding_dimension: Size | None = None
    pooling_mode: Key | list[Key] | None = None
    include_prompt: bool = True
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False

    @property
    def modes(self) -> list[str]:
        """The ways that are on, by their names."""
        if self.pooling_mode:
            return [self.pooling_mode] if isinstance(self.pooling_mode, str) else self.pooling_mode
        prefix = "pooling_mode_"
        return [key.removeprefix(prefix) for key, value in self if key.startswith(prefix) and value is True]


class DenseConfig(Foreign):
    """config.json of a dense layer."""

    in_features: Size
    out_features: Size
    bias: bool = True
    activation_function: _ACTIVATIONS = "torch.nn.modules.activation.Tanh"
    use_residual: bool = False
    module_input_name: Key | None = None
    module_output_name: Key | None = None


class _NormalizeConfig(Foreign):
    module_input_name: Key | None = None
    module_output_name: Key | None = None


class _LayerNormConfig(Foreign):
    dimension: Size


class _DropoutConfig(Foreign):
    dropout: Annotated[float, Field(ge=0, le=1)] = 0.2


class _WeightedLayerPooling(Foreign):
    word_embedding_dimension: Size | None = None
    embedding_dimension: Size | None = None
    layer_start: Annotated[int, Field(ge=0, le=4096)] = 4
    num_hidden_layers: Annotated[int, Field(ge=1, le=4096)] = 12


class Model(Foreign):
    """config_sentence_transformers.json."""

    versions: dict[Key, str] = Field(default_factory=dict, alias="__version__")
    model_type: Literal["SentenceTransformer"] = "SentenceTransformer"
    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: Literal["cosine", "dot", "euclidean", "manhattan", None] = None
    truncate_dim: Size | None = None
    requirements: dict[str, Any] | None = None


_SETTINGS: dict[str, type[Foreign]] = {
    "Transformer": TransformerConfig,
    "Pooling": PoolingConfig,
    "Dense": DenseConfig,
    "Normalize": _NormalizeConfig,
    "LayerNorm": _LayerNormConfig,
    "Dropout": _DropoutConfig,
    "WeightedLayerPooling": _WeightedLayerPooling,
}


def read_modules(folder: Path) -> list[Listed]:
    """The entries of modules.json, in order; none where there is no such file."""
    path = folder / MODULES_FILE
    if not path.is_file():
        return []
    found = read_json(path)
    if not isinstance(found, list) or not 1 <= len(found) <= _MOST_MODULES:
        raise DataError(f"expected a list of 1 to {_MOST_MODULES} modules", path=path)
    return [decode(Listed, entry, path) for entry in found]


def read_transformer(folder: Path) -> TransformerConfig:
    """The settings of a folder's transformer; the file was named after the architecture, once."""
    named = sorted(folder.glob("sentence_*_config.json"))
    path = named[0] if named else folder / "sentence_bert_config.json"
    return decode(TransformerConfig, read_object(path), path)


def read_pooling(folder: Path) -> PoolingConfig:
    """The settings of a pooling's folder."""
    return decode(PoolingConfig, read_object(folder / "config.json"), folder / "config.json")


def read_dense(folder: Path) -> DenseConfig:
    """The settings of a dense layer's folder."""
    return decode(DenseConfig, read_object(folder / "config.json"), folder / "config.json")


def read_model(folder: Path) -> Model:
    """The settings of a whole model of sentence-transformers."""
    return decode(Model, read_object(folder / MODEL_FILE), folder / MODEL_FILE)


def check_modules(folder: Path) -> list[Listed]:
    """Refuse what sentence-transformers must not be told by a stranger's folder; see `read_modules`."""
    modules = read_modules(folder)
    read_model(folder)
    for module in modules:
        kind = KINDS.get(module.type)
        if kind is None:
            raise ConfigError(
                f"{folder / MODULES_FILE}: the module {one_line(module.type)} is not run here; known are"
                f" {', '.join(_SETTINGS)} of sentence-transformers"
            )
        if kind == "Transformer":
            read_transformer(folder / module.path)
        elif module.path and kind != "StaticEmbedding":  # which has weights and a tokenizer alone
            path = folder / module.path / "config.json"
            decode(_SETTINGS[kind], read_object(path), path)
    return modules


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
