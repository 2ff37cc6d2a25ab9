"""Training only those rows of the token embedding that the training texts use: the same result, less work.

A row without a gradient never moves under Adam without weight decay (its moments stay 0), so leaving it out
of the optimiser changes nothing; a fine-tuning set uses perhaps a third of a vocabulary, and the embedding is
often half of all parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int
    from torch import Tensor


class UsedRows(nn.Embedding):
    """An embedding with the rows of some tokens as its parameter, and the others as a buffer.

    Its state dict is that of the whole embedding.
    """

    rest: Float[Tensor, "token dim"]
    place: Int[Tensor, " token"]

    def hold(self, used: Int[Tensor, " used"]) -> None:
        """Keep `used` (ascending token ids) trainable and freeze the rest."""
        whole = self.weight.data
        place = torch.full((len(whole),), -1, dtype=torch.int64, device=whole.device)
        place[used] = torch.arange(len(used), device=whole.device)
        self.register_buffer("rest", whole, persistent=False)
        self.register_buffer("place", place, persistent=False)
        self.weight = nn.Parameter(whole[used].clone())

    def forward(self, input: Int[Tensor, "*any"]) -> Float[Tensor, "*any dim"]:  # noqa: A002
        """Look up tokens; those that are not trained may occur in evaluation only."""
        place = self.place[input]
        if self.training:
            return nn.functional.embedding(place, self.weight)
        own = nn.functional.embedding(place.clamp(min=0), self.weight)
        return torch.where((place >= 0)[..., None], own, nn.functional.embedding(input, self.rest))

    def whole(self) -> Float[Tensor, "token dim"]:
        """The whole embedding as it stands now."""
        whole = self.rest.clone()
        whole[self.place >= 0] = self.weight.detach()
        return whole

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        del keep_vars
        destination[prefix + "weight"] = self.whole()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any, **named: Any) -> None:
        found = state_dict.get(prefix + "weight")
        if found is not None and found.shape == self.rest.shape:
            self.rest.copy_(found)
            state_dict = {**state_dict, prefix + "weight": found[self.place >= 0]}
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)


def train_used_rows(backbone: Any, used: np.ndarray) -> bool:
    """Let training touch only the embedding rows of the token ids `used`; False where that can't be done.

    It can't where the embedding is frozen, sparse, tied to another layer or not a plain one.
    """
    embedding = backbone.get_input_embeddings()
    output = backbone.get_output_embeddings() if hasattr(backbone, "get_output_embeddings") else None
    others = [module for module in backbone.modules() if module is not embedding]
    tied = any(getattr(module, "weight", None) is embedding.weight for module in [*others, output])
    if (
        type(embedding) is not nn.Embedding
        or tied
        or not embedding.weight.requires_grad
        or embedding.max_norm
        or embedding.sparse
        or embedding.scale_grad_by_freq
    ):
        return False
    rows = cast("UsedRows", embedding)
    rows.__class__ = UsedRows  # its parameter changes shape, but the module stays who it is
    rows.hold(torch.as_tensor(used, dtype=torch.int64, device=embedding.weight.device))
    return True


def train_all_rows(backbone: Any) -> None:
    """Undo `train_used_rows`, keeping what was learned."""
    embedding = backbone.get_input_embeddings()
    if isinstance(embedding, UsedRows):
        whole = embedding.whole()
        del embedding.rest, embedding.place
        embedding.__class__ = nn.Embedding  # type: ignore[assignment]
        embedding.weight = nn.Parameter(whole)
