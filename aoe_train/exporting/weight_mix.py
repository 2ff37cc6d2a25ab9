"""A trained model, mixed with its backbone: as `optim.weight_mix` in training, for any share afterwards.

Robust fine-tuning of zero-shot models (WiSE-FT; Wortsman et al., CVPR 2022), Eq. 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.folder_checks import read_object
from aoe_train.model.run_folder import RUN_FILE
from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


def backbone_of(model: str | Path, folder: Path) -> str:
    """What a model was trained from, by the record in its folder."""
    try:
        sources = read_object(folder / RUN_FILE).get("sources")
    except DataError:
        sources = None
    found = sources.get("backbone") if isinstance(sources, dict) else None
    if not isinstance(found, str):
        raise ConfigError(f"{model}: has no record of what it was trained from; give --backbone")
    return found


@torch.no_grad()
def mix(encoder: Encoder, backbone: Encoder, share: float) -> bool:
    """Take `share` of the way from the weights of `backbone` to those of `encoder`, in place.

    Returns whether `encoder` had adapters, which are merged now.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"weight_mix: found {share:g}; expected a share above 0, and 1 at most")
    adapters = has_lora(encoder.model.backbone)
    for one in (encoder, backbone):
        if has_lora(one.model.backbone):
            merge_lora(one.model.backbone)
    trained, first = (dict(one.model.named_parameters()) for one in (encoder, backbone))
    if {name: weight.shape for name, weight in trained.items()} != {
        name: weight.shape for name, weight in first.items()
    }:
        raise ConfigError(
            "weight_mix: the model has other weights than its backbone; give the --backbone it began as"
        )
    for name, weight in trained.items():
        weight.copy_(first[name].lerp(weight, share))
    return adapters
