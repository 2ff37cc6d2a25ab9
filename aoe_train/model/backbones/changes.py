"""A backbone with its settings, and changes in place: adapters, bidirectional attention, fewer layers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from aoe_train.model.backbones.packaged import CACHED_AS, SMOLLM2
from aoe_train.model.backbones.static import StaticTable, check_static
from aoe_train.model.device import evaluation_mode
from aoe_train.model.folder_checks import ADAPTERS_FILE
from aoe_train.model.packing.sequences import position_offset
from aoe_train.model.text_model import PackedBackbone
from aoe_train.model.tokenised import UNLIMITED
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_json

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel

    from aoe_train.settings.run_settings import LoraSettings
    from aoe_train.settings.train_settings import EncoderSettings

# Tokens, unless the model or its tokenizer sets a lower limit.
_MAX_LENGTH = 512
_PROBE_TOKENS = 4
# Decoders of transformers whose layers have no flag for it.
_CAUSAL = {
    "bloom",
    "codegen",
    "falcon_mamba",
    "mamba",
    "mamba2",
    "mpt",
    "openai-gpt",
    "rwkv",
    "xglm",
}
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
# A folder in huggingface_hub's cache, such as `hub/models--owner--name/snapshots/` and 40 digits.
_SNAPSHOT = re.compile(
    r"/models--(?P<name>[^/]+)/snapshots/(?P<commit>[0-9a-f]{40})/?$"
)


def apply_settings(
    settings: EncoderSettings, backbone: PreTrainedModel
) -> EncoderSettings:
    """Change the backbone as the settings request, and choose its pooling and maximum length.

    Raises ConfigError if it doesn't support them.
    """
    if isinstance(backbone, StaticTable):
        check_static(settings)
        return settings.model_copy(update={"pooling": "avg"})
    if settings.layers is not None:
        keep_layers(backbone, settings.layers)
    if settings.bidirectional:
        make_bidirectional(backbone)
    pooling = _pooling(settings.pooling, backbone)
    if pooling == "cells" and not settings.include_prompt:
        raise ConfigError(
            "include_prompt is false, but cells mix prompt and text; use another pooling"
        )
    limit = _max_tokens(backbone)
    if settings.max_length is not None and settings.max_length > limit:
        raise ConfigError(
            f"max_length {settings.max_length}: this backbone reads at most {limit} tokens"
        )
    max_length = settings.max_length or min(_MAX_LENGTH, limit)
    return settings.model_copy(update={"pooling": pooling, "max_length": max_length})


def cut_length(
    settings: EncoderSettings, stored: Mapping[str, Any], backbone: PreTrainedModel
) -> EncoderSettings:
    """Lower a model's own maximum length, which may count the positions before RoBERTa's first token."""
    own = stored.get("max_length")
    if own is None or own != settings.max_length:
        return settings
    max_length = min(own, _max_tokens(backbone))
    return settings.model_copy(update={"max_length": max_length})


def _max_tokens(backbone: PreTrainedModel) -> int:
    """The most tokens that a backbone reads; XLNet has -1 positions, which means any number."""
    positions = getattr(backbone.config, "max_position_embeddings", None)
    if positions in (None, -1):
        return UNLIMITED
    return int(positions) - position_offset(backbone)


def _pooling(pooling: str, backbone: PreTrainedModel) -> str:
    """The backbone's default pooling for "auto"; raises ConfigError for one that it doesn't support."""
    if isinstance(backbone, PackedBackbone):
        if pooling == "auto":
            return backbone.poolings[0]
        if pooling not in backbone.poolings:
            raise ConfigError(
                f"pooling {pooling}: expected {', '.join(backbone.poolings)} for a {backbone.title}"
            )
    elif pooling == "auto":  # the token that attends to the whole text
        return "last" if is_causal(backbone) else "cls"
    elif pooling == "cells":
        raise ConfigError(
            "pooling cells: only a Recurrent Attention Network has cells; use avg or cls"
        )
    return pooling


def add_lora(backbone: PreTrainedModel, settings: LoraSettings) -> None:
    """Freeze `backbone` and let transformers add float32 adapters in place, so that it saves only these."""
    if find_spec("peft") is None:
        raise ConfigError(
            "LoRA needs peft, which isn't installed; install it with `pip install peft`"
        )
    from peft import LoraConfig, prepare_model_for_kbit_training

    if settings.four_bit:
        prepare_model_for_kbit_training(backbone, use_gradient_checkpointing=False)  # type: ignore[no-untyped-call]
    targets: str | list[str] = "all-linear"
    if settings.targets != "auto":
        targets = list(settings.targets)
    adapter = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=targets,
    )
    layers = {
        path.rpartition(".")[2]
        for path, module in backbone.named_modules()
        if isinstance(module, nn.Linear)
    }
    try:
        backbone.add_adapter(adapter)
    except ValueError as error:
        raise ConfigError(
            f"lora.targets {settings.targets}: {one_line(str(error))}; this backbone's linear layers are"
            f" {', '.join(sorted(layers))}"
        ) from error
    for weight in backbone.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()


def name_base(folder: Path, backbone: PreTrainedModel) -> None:
    """Store the base of the adapters in `folder` by Hub id and commit, or by name, not as a cache folder.

    A model without adapters replaces those of an earlier one.
    """
    path = folder / ADAPTERS_FILE
    if not has_lora(backbone):
        for old in (path, folder / _ADAPTER_WEIGHTS):
            old.unlink(missing_ok=True)
        return
    base = Path(backbone.name_or_path or "")
    origin = hub_origin(base)
    commit = None
    if origin is not None:
        name, commit = origin
    elif base.name == CACHED_AS:
        name = SMOLLM2
    else:
        name = str(base.absolute())
    about = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**about, "base_model_name_or_path": name, "revision": commit})


def hub_origin(folder: str | Path) -> tuple[str, str] | None:
    """Hub id and commit of a folder in the Hub's cache; None for other folders."""
    match = _SNAPSHOT.search(Path(folder).as_posix())
    if match is None:
        return None
    return match["name"].replace("--", "/"), match["commit"]


def has_lora(backbone: nn.Module) -> bool:
    """Whether `backbone` has adapters."""
    return bool(_adapted_layers(backbone))


def merge_lora(backbone: PreTrainedModel) -> None:
    """Merge the adapters into the weights that they adapt, in place."""
    for name, layer in _adapted_layers(backbone).items():
        layer.merge()
        backbone.set_submodule(name, layer.get_base_layer())
    if getattr(backbone, "_hf_peft_config_loaded", False):
        del backbone.peft_config
        backbone._hf_peft_config_loaded = False
        # Loading adapters stores the weight names of adapter files here, which saving would use.
        setattr(backbone, "_weight_conversions", None)  # noqa: B010 - transformers declares no such field


def absorb_lora(backbone: PreTrainedModel) -> None:
    """Merge the loaded adapters in place; `name_or_path` becomes empty, as no folder has these weights."""
    merge_lora(backbone)
    backbone.requires_grad_(requires_grad=True)
    pooler = getattr(backbone, "pooler", None)
    if pooler is not None:  # the vectors don't use it
        pooler.requires_grad_(requires_grad=False)
    backbone.name_or_path = ""


def four_bit_config(settings: LoraSettings) -> BitsAndBytesConfig | None:
    """The `quantization_config` for `from_pretrained`: 4-bit NormalFloat for QLoRA, or None."""
    if not settings.four_bit:
        return None
    if not torch.cuda.is_available():
        raise ConfigError(
            "lora.four_bit needs a CUDA device, but none is visible; set lora.four_bit=false for plain LoRA"
        )
    if find_spec("bitsandbytes") is None:
        raise ConfigError(
            "lora.four_bit needs bitsandbytes; install it with `pip install bitsandbytes`"
        )
    from transformers import BitsAndBytesConfig

    has_bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if has_bf16 else torch.float16,
    )


def is_causal(backbone: PreTrainedModel) -> bool:
    """Whether a token attends only to itself and earlier tokens."""
    if getattr(backbone.config, "is_causal", None) is False:
        return False
    if backbone.config.model_type in _CAUSAL:
        return True
    return any(getattr(module, "is_causal", False) for module in backbone.modules())


@torch.no_grad()
def make_bidirectional(backbone: PreTrainedModel) -> None:
    """Let every token of a decoder attend to the whole text, in place; the saved configuration records it."""
    backbone.config.is_causal = False  # transformers builds attention masks from it
    for module in backbone.modules():
        if hasattr(module, "is_causal"):
            setattr(module, "is_causal", False)  # noqa: B010 - a flag that nn.Module doesn't declare
    # The first token's output must depend on the second token.
    ids = torch.tensor([[1, 2], [1, 3]], device=backbone.device)
    with evaluation_mode(backbone):
        output = backbone(input_ids=ids, attention_mask=torch.ones_like(ids))
    first, second = output.last_hidden_state[:, 0]
    if torch.equal(first, second):
        raise ConfigError(
            f"{type(backbone).__name__} can't attend in both directions: transformers' code for it always"
            " masks later tokens; set bidirectional=false, or use another backbone"
        )


def _adapted_layers(backbone: nn.Module) -> dict[str, Any]:
    # Without peft there are no adapters, and importing it takes seconds.
    if "peft" not in sys.modules:
        return {}
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {
        name: module
        for name, module in backbone.named_modules()
        if isinstance(module, BaseTunerLayer)
    }


def keep_layers(backbone: Any, count: int) -> None:
    """Remove all but the first `count` layers, from the backbone and its configuration, in place.

    Raises ConfigError if it has fewer layers.
    """
    _, layers = _find_layers(backbone)
    num_layers = len(layers)
    config = backbone.config
    if not 1 <= count <= num_layers:
        raise ConfigError(
            f"layers {count}: this backbone has {num_layers} layers; expected 1 to {num_layers}"
        )
    if count == num_layers:
        return
    del layers[count:]
    config.num_hidden_layers = count
    for name, value in vars(config).items():  # lists with an entry per layer
        if "layer" in name and isinstance(value, list) and len(value) == num_layers:
            setattr(config, name, value[:count])


def train_top_layers(backbone: Any, count: int) -> None:
    """Freeze all but the last `count` layers and the final norm, in place; frozen layers need no backward."""
    _, layers = _find_layers(backbone)
    if count > len(layers):
        raise ConfigError(
            f"optim.top_layers {count}: this backbone has {len(layers)} layers; expected 1 to {len(layers)}"
        )
    trained = nn.ModuleList(layers[-count:])
    norm = after_layers(backbone)
    if norm is not None:
        trained.append(norm)
    trainable = {id(weight) for weight in trained.parameters()}
    for weight in backbone.parameters():
        if id(weight) not in trainable:
            weight.requires_grad_(requires_grad=False)


def count_layers(backbone: object) -> int:
    """The number of layers."""
    _, layers = _find_layers(backbone)
    return len(layers)


def has_deep_layers(backbone: object) -> bool:
    """Whether there are layers below the last two, which the preset domain freezes."""
    try:
        return count_layers(backbone) > 2
    except ConfigError:
        return False


@torch.no_grad()
def after_layers(backbone: Any) -> nn.Module | None:
    """The norm between the last layer and the backbone's output, or None; found by running the backbone."""
    parent, layers = _find_layers(backbone)
    outputs: list[Tensor] = []

    def keep_output(
        _layer: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]
    ) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)

    hook = layers[-1].register_forward_hook(keep_output)
    # Leaving the context of torch's handle removes the hook.
    with hook, evaluation_mode(backbone):
        ids = torch.arange(_PROBE_TOKENS, device=backbone.device)
        final = backbone(input_ids=ids[None]).last_hidden_state
        (last,) = outputs
        if _equal(last, final):
            return None
        for module in parent.children():
            is_norm = "norm" in type(module).__name__.lower()
            if is_norm and _equal(module(last), final):
                return module
    raise ConfigError(
        f"{type(backbone).__name__}: its last layer is followed by more than a norm, so earlier layers can't"
        " replace it; leave layers out"
    )


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b)


def _find_layers(backbone: Any) -> tuple[nn.Module, nn.ModuleList]:
    """The list of layers, and the module that contains it."""
    count = getattr(backbone.config, "num_hidden_layers", None)
    candidates = [
        (parent, layers)
        for parent, layers in _module_lists(backbone)
        if len(layers) == count
    ]
    if len(candidates) != 1 or isinstance(backbone, PackedBackbone):
        raise ConfigError(
            f"{type(backbone).__name__}: has no single list of layers that run one after the other; leave out"
            " encoder.layers, objective.layers, optim.top_layers and the preset domain"
        )
    return candidates[0]


def _module_lists(module: nn.Module) -> Iterator[tuple[nn.Module, nn.ModuleList]]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield module, child
        else:
            yield from _module_lists(child)
