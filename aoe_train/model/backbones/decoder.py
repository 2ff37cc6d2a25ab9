"""Decoders as encoders: low-rank adapters, attention in both directions, a token to pad with."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from aoe_train.model.backbones.load import hub_origin
from aoe_train.model.backbones.packaged import name_of_kept
from pairkit.app.errors import ConfigError
from pairkit.system.files import write_json

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase

    from aoe_train.settings.training import LoraSettings


def add_lora(backbone: PreTrainedModel, settings: LoraSettings) -> None:
    """Freeze `backbone` and put trainable low-rank adapters into it, in place.

    The adapters are put in by transformers itself, so the backbone keeps its class and module names, and its
    `save_pretrained` writes the adapters only. They stay float32 whatever the frozen weights are.
    """
    if find_spec("peft") is None:
        raise ConfigError("LoRA needs peft, which isn't installed; install it with `pip install peft`")
    from peft import LoraConfig

    if settings.four_bit:
        _prepare_four_bit(backbone)
    adapter = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear" if settings.targets == "auto" else list(settings.targets),
    )
    try:
        backbone.add_adapter(adapter)
    except ValueError as error:
        raise ConfigError(
            f"no layer to adapt is called {settings.targets}; "
            f"the backbone's linear layers are {', '.join(_linear_layers(backbone))}"
        ) from error
    for weight in backbone.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()


def name_base(folder: Path, backbone: PreTrainedModel) -> None:
    """Let adapters in `folder` name their base by Hub id and commit, or by name: not by a cache's folder."""
    path, base = folder / "adapter_config.json", Path(backbone.name_or_path or "")
    name, commit = hub_origin(base) or (name_of_kept(base) or str(base.absolute()), None)
    about = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**about, "base_model_name_or_path": name, "revision": commit})


def has_lora(backbone: nn.Module) -> bool:
    """Whether there are adapters in `backbone`."""
    return bool(_adapted_layers(backbone))


def merge_lora(backbone: PreTrainedModel) -> None:
    """Add the adapters' products to the weights they adapt, in place: an ordinary backbone again."""
    for name, layer in _adapted_layers(backbone).items():
        layer.merge()
        backbone.set_submodule(name, layer.get_base_layer())
    if getattr(backbone, "_hf_peft_config_loaded", False):
        del backbone.peft_config
        backbone._hf_peft_config_loaded = False
        # Loading adapters left the names of an adapter file here, which saving would give to the weights.
        setattr(backbone, "_weight_conversions", None)  # noqa: B010 - transformers declares no such field


def absorb_lora(backbone: PreTrainedModel) -> None:
    """Merge the adapters that `backbone` was loaded with, and make its weights trainable again, in place.

    No folder holds these weights: `name_or_path` becomes empty, as further adapters alone would not bring
    them back.
    """
    merge_lora(backbone)
    backbone.requires_grad_(requires_grad=True)
    pooler = getattr(backbone, "pooler", None)
    if pooler is not None:  # takes no part in a text's vector
        pooler.requires_grad_(requires_grad=False)
    backbone.name_or_path = ""


def four_bit_config(settings: LoraSettings) -> BitsAndBytesConfig | None:
    """What `from_pretrained` takes as `quantization_config`: 4-bit NormalFloat for QLoRA, None without."""
    if not settings.four_bit:
        return None
    if not torch.cuda.is_available():
        raise ConfigError(
            "lora.four_bit needs a CUDA device and none is visible; set lora.four_bit=false for plain LoRA"
        )
    if find_spec("bitsandbytes") is None:
        raise ConfigError("lora.four_bit needs bitsandbytes; install it with `pip install bitsandbytes`")
    from transformers import BitsAndBytesConfig

    brain = torch.cuda.is_bf16_supported(including_emulation=False)
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if brain else torch.float16,
    )


def is_causal(backbone: PreTrainedModel) -> bool:
    """Whether a token sees only the tokens before it."""
    if getattr(backbone.config, "is_causal", None) is False:
        return False
    return any(getattr(module, "is_causal", False) for module in backbone.modules())


def make_bidirectional(backbone: PreTrainedModel) -> None:
    """Let every token of a decoder see the whole text, in place; saved with the backbone's configuration."""
    backbone.config.is_causal = False  # transformers builds its masks by it
    for module in backbone.modules():
        if hasattr(module, "is_causal"):
            setattr(module, "is_causal", False)  # noqa: B010 - a plain flag, no parameter
    if not _sees_ahead(backbone):
        raise ConfigError(
            f"{type(backbone).__name__} can't attend in both directions: transformers' code for it always "
            "hides later tokens; set bidirectional=false, or use another backbone"
        )


def default_pooling(backbone: PreTrainedModel) -> str:
    """The pooling that suits a backbone nobody named one for: the one token that has read the whole text."""
    return "last" if is_causal(backbone) else "cls"


def add_padding(tokenizer: PreTrainedTokenizerBase) -> None:
    """Give a tokenizer without a padding token one it already has; padding is masked, so any will do."""
    if tokenizer.pad_token is not None:
        return
    token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.bos_token
    if token is None:
        raise ConfigError(
            "the tokenizer has no padding token, nor an end, unknown or beginning token to pad with; "
            'set one, such as "pad_token" in tokenizer_config.json'
        )
    tokenizer.pad_token = token


def _adapted_layers(backbone: nn.Module) -> dict[str, Any]:
    if "peft" not in sys.modules:  # then nothing has put adapters in, and importing it takes seconds
        return {}
    from peft.tuners.tuners_utils import BaseTunerLayer

    return {name: module for name, module in backbone.named_modules() if isinstance(module, BaseTunerLayer)}


def _linear_layers(backbone: nn.Module) -> list[str]:
    return sorted(
        {name.rpartition(".")[2] for name, m in backbone.named_modules() if isinstance(m, nn.Linear)}
    )


def _prepare_four_bit(backbone: PreTrainedModel) -> None:
    if not getattr(backbone, "is_loaded_in_4bit", False):
        raise ConfigError(
            "lora.four_bit is set, but the backbone's weights aren't in 4 bits; load it with "
            "`four_bit_config`"
        )
    from peft import prepare_model_for_kbit_training

    prepare_model_for_kbit_training(backbone, use_gradient_checkpointing=False)  # type: ignore[no-untyped-call]


@torch.no_grad()
def _sees_ahead(backbone: PreTrainedModel) -> bool:
    """Whether the first token's output depends on the second token."""
    was_training = backbone.training
    backbone.train(mode=False)
    ids = torch.tensor([[1, 2], [1, 3]], device=backbone.device)
    first = backbone(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, 0]
    backbone.train(was_training)
    return not torch.equal(first[0], first[1])
