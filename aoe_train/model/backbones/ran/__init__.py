"""RAN in PyTorch; importing this makes transformers' Auto classes know it."""

from __future__ import annotations

from transformers import AutoConfig, AutoModel

from aoe_train.model.backbones.ran.configuration import RanConfig
from aoe_train.model.backbones.ran.modeling import RanModel, RanPackedOutput

AutoConfig.register("ran", RanConfig)
AutoModel.register(RanConfig, RanModel)

__all__ = ["RanConfig", "RanModel", "RanPackedOutput"]
