"""The Recurrent Attention Network; importing this registers it with transformers' Auto classes.

Example:
    from aoe_train import ran  # noqa: F401 - registers it
    from transformers import AutoModel

    model = AutoModel.from_pretrained("ran")  # a folder that `aoe train` wrote
"""

from aoe_train.model.backbones.ran import RanConfig, RanModel
from aoe_train.model.backbones.ran.modeling import RanLayerNorm, RanPreTrainedModel

__all__ = ["RanConfig", "RanLayerNorm", "RanModel", "RanPreTrainedModel"]
