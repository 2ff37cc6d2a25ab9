"""Checks of untrusted model folders before a library opens them, so that none of their code runs.

config.json and adapter_config.json may not contain settings for which transformers or peft would run code.
sentence-transformers never opens such a folder: its modules and settings are read here. Weights are only read
from safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


ADAPTERS_FILE = "adapter_config.json"
MODULES_FILE = "modules.json"
MODEL_FILE = "config_sentence_transformers.json"
_MAX_MODULES = 16
_MAX_SIZE = 1 << 20
_REMEDY = "copy or download the model again"

F = TypeVar("F", bound=BaseModel)

# sentence-transformers has moved its classes; listing each full name excludes everything else in the library.
_MODULES = {
    "Transformer": "base.modules.transformer",
    "Dense": "base.modules.dense",
    "Normalize": "base.modules.normalize",
    "Pooling": "sentence_transformer.modules.pooling",
    "StaticEmbedding": "sentence_transformer.modules.static_embedding",
}
KINDS = {
    f"sentence_transformers.{parent}.{kind}": kind
    for kind, path in _MODULES.items()
    for parent in (
        "models",
        f"models.{kind}",
        path,
        path.rpartition(".")[0],
        "sentence_transformer.modules",
    )
}

Size = Annotated[int, Field(ge=1, le=_MAX_SIZE)]
Length = Annotated[int, Field(ge=1, le=1 << 40)]
Key = Annotated[str, Field(pattern=r"^[\w.+-]{1,80}$")]
_ACTIVATIONS = "ELU|GELU|LeakyReLU|Mish|ReLU|ReLU6|SELU|SiLU|Sigmoid|Softplus|Tanh"
_Activation = Annotated[
    str,
    Field(
        pattern=rf"^torch\.nn\.modules\.(linear\.Identity|activation\.({_ACTIVATIONS}))$"
    ),
]

# Any other name may be a repository of kernels that transformers would download and run.
_IMPLEMENTATIONS = {
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
    "flex_attention",
    "grouped_mm",
    "batched_mm",
}
# Limits of numbers in config.json, as a library makes an object of each layer or label before it reads weights.
_MOST = {
    "layer": 1_000,
    "layers": 1_000,
    "groups": 1_000,
    "num": 1_000,
    "labels": 100_000,
}
_KERNELS = ("use_kernels", "kernel_config")
_QUANTIZATIONS = ("quantization_config", "compression_config")
_QUANTIZERS = (None, "bitsandbytes")  # others download kernels, or need training data
# Settings of plain low-rank adapters. Others import modules by name; they may only be present if unset.
_LORA = {
    "peft_type",
    "base_model_name_or_path",
    "revision",
    "task_type",
    "auto_mapping",
    "peft_version",
    "inference_mode",
    "r",
    "lora_alpha",
    "lora_dropout",
    "bias",
    "fan_in_fan_out",
    "use_rslora",
    "use_dora",
    "lora_bias",
    "init_lora_weights",
    "target_modules",
    "rank_pattern",
    "alpha_pattern",
    "layers_to_transform",
    "layers_pattern",
}
# peft writes these values, which have no effect.
_DEFAULTS = {"megatron_core": "megatron.core", "qalora_group_size": 16}


class Foreign(BaseModel):
    """Base of untrusted JSON: exact types, and only listed keys."""

    # Building all of these classes takes a tenth of a second, and a run needs few of them.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,
    )


def read_json(path: Path, remedy: str = _REMEDY) -> object:
    """Read a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"not readable as JSON ({error}); {remedy}", path=path
        ) from error


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if the file doesn't exist."""
    if not path.is_file():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object; {_REMEDY}", path=path)
    return value


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"not readable ({error}); {_REMEDY}", path=path) from error


@contextmanager
def panics_as_errors(task: str) -> Iterator[None]:
    """Convert a panic of the tokenizer's Rust code: its rules are damaged, or too slow for a text."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3 doesn't export the class
            raise
        reason = one_line(str(error), 80)
        raise DataError(
            f"the tokenizer failed {task} ({reason}); use another tokenizer"
        ) from error


def mapped_array(path: Path, remedy: str) -> np.ndarray:
    """The array in a .npy file, mapped into memory."""
    from numpy.lib.format import open_memmap

    # numpy evaluates the header as a Python literal, which can raise anything.
    try:
        array: np.ndarray = open_memmap(path, mode="r")
    except Exception as error:
        raise DataError(
            f"not readable ({one_line(str(error))}); {remedy}", path=path
        ) from error
    return array


def decode(
    model: type[F],
    values: object,
    path: Path,
    remedy: str = _REMEDY,
) -> F:
    """Validate the values read from `path`."""
    try:
        return model.model_validate(values)
    except UnicodeEncodeError as error:
        raise DataError(
            f"contains half a surrogate pair; {remedy}", path=path
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        problem = first["msg"]
        if first["type"] == "extra_forbidden":
            problem = "is an unknown setting"
        shown = repr(first["input"])[:60]
        raise DataError(
            f"{key} = {shown}: {problem[:1].lower()}{problem[1:]}; {remedy}", path=path
        ) from error


class Listed(Foreign):
    """One entry of modules.json."""

    type: Annotated[str, Field(max_length=200)]
    path: Annotated[str, Field(pattern=r"^(\.|[\w-]{0,80})$")] = (
        ""  # Model2Vec writes "."
    )
    idx: int = 0
    name: Key = "0"
    kwargs: list[Key] = Field(default_factory=list)


class _Options(Foreign):
    """Options that are passed on to transformers."""

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
    """config.json of a pooling; older releases have a flag for each mode."""

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
        """The enabled modes."""
        if isinstance(self.pooling_mode, str):
            return [self.pooling_mode]
        if self.pooling_mode:
            return self.pooling_mode
        prefix = "pooling_mode_"
        return [
            key.removeprefix(prefix)
            for key, value in self
            if key.startswith(prefix) and value is True
        ]


class DenseConfig(Foreign):
    """config.json of a dense layer."""

    module_input_name: Key | None = None
    module_output_name: Key | None = None
    in_features: Size
    out_features: Size
    bias: bool = True
    activation_function: _Activation = "torch.nn.modules.activation.Tanh"
    use_residual: bool = False


class Model(Foreign):
    """config_sentence_transformers.json."""

    versions: dict[Key, str] = Field(default_factory=dict, alias="__version__")
    model_type: Literal["SentenceTransformer"] = "SentenceTransformer"
    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: Literal["cosine", "dot", "euclidean", "manhattan", None] = None
    truncate_dim: Size | None = None
    requirements: dict[str, Any] | None = None


def read_modules(folder: Path) -> list[Listed]:
    """The entries of modules.json, in order; empty if there is no such file."""
    path = folder / MODULES_FILE
    if not path.is_file():
        return []
    entries = read_json(path)
    if not isinstance(entries, list) or not 1 <= len(entries) <= _MAX_MODULES:
        raise DataError(f"expected a list of 1 to {_MAX_MODULES} modules", path=path)
    return [decode(Listed, entry, path) for entry in entries]


def check_settings(folder: Path) -> None:
    """Refuse settings for which a library would run code, or never return."""
    path = folder / "config.json"
    for key, value in _settings(read_object(path)):
        problem = _problem(key, value)
        if problem is not None:
            raise ConfigError(f"{path}: {problem}")
    _check_adapters(folder / ADAPTERS_FILE)
    read_object(folder / "tokenizer_config.json")


def _problem(key: str, value: object) -> str | None:
    """Why a setting is refused, if it is."""
    is_name = isinstance(value, str)
    if "_implementation" in key and is_name and value not in _IMPLEMENTATIONS:
        names = ", ".join(sorted(_IMPLEMENTATIONS))
        return f"{key} = {value!r} would download and run code; remove the line, or use one of {names}"
    if key in _KERNELS and value:
        return f"{key} would download and run code; remove the line"
    most = _MOST.get(key.rpartition("_")[2])
    if most is not None and isinstance(value, int) and value > most:
        return f"{key} = {value}: expected at most {most:,}; {_REMEDY}"
    if key in _QUANTIZATIONS and isinstance(value, dict):
        method = value.get("quant_method")
        if method not in _QUANTIZERS:
            return f"weights quantized by {method!r}; expected bitsandbytes, or none"
    return None


def _check_adapters(path: Path) -> None:
    config = read_object(path)
    remedy = "only plain low-rank adapters are supported; merge these into their base"
    for key, value in config.items():
        if value and key not in _LORA and _DEFAULTS.get(key) != value:
            raise ConfigError(f"{path}: {key} is set; {remedy}")
    if config and config.get("peft_type") != "LORA":
        raise ConfigError(
            f"{path}: peft_type = {str(config.get('peft_type'))[:60]!r}; {remedy}"
        )


def _settings(tree: object) -> Iterator[tuple[str, object]]:
    """All keys with values, at any depth; items of lists and of implementations have their parent's key."""
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting:
        parent, value = waiting.pop()
        if isinstance(value, dict):
            inherited = parent if "_implementation" in parent else ""
            waiting += [(inherited or str(key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(parent, item) for item in value]
        yield parent, value
