"""The Recurrent Attention Network; importing this registers it with transformers' Auto classes.

Example:
    import aoe_train.ran
    from transformers import AutoModel

    model = AutoModel.from_pretrained("ran")  # a folder that `aoe train` wrote
"""

from aoe_train._backbones.ran import RanConfig, RanModel
from aoe_train._backbones.ran.layers import RanLayerNorm
from aoe_train._backbones.ran.modeling import RanPreTrainedModel

__all__ = ["RanConfig", "RanLayerNorm", "RanModel", "RanPreTrainedModel"]
