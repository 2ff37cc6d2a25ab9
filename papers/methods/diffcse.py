"""DiffCSE (Chuang et al., NAACL 2022, arXiv 2204.10298): vectors that tell where a text was edited.

The loss (Section 3 there) is L_contrast + 0.005 L_RTD. L_contrast is unsupervised SimCSE's, tau = 0.05,
behind a projection of two layers with batch normalisation. For L_RTD 30 % of a text's tokens are masked, a
fixed masked language model, the generator, says what stands there, and a discriminator has to tell of each
token of this edited text whether it is the original one: the mean cross-entropy over all tokens. It begins as
a copy of the backbone, and its [CLS] is given the text's projected vector. As in the authors' code, the
generator says its likeliest token at every place. Projection and discriminator are not kept.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

import torch
from safetensors import SafetensorError
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence

from pairkit.app.errors import ConfigError
from papers.methods.base import Method, OwnTokens

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU, _MASKED, _LAMBDA = 0.05, 0.3, 0.005
_IGNORED = -100


class DiffCse(Method):
    """Generator (a masked language model: a folder or Hub id), projection and discriminator."""

    lr = 7e-6

    def __init__(self, generator: str) -> None:
        super().__init__()
        self._generator = generator

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        backbone, dim = encoder.model.backbone, encoder.model.dim
        self._own = OwnTokens(encoder)
        self._mask = encoder.tokenizer.mask_token_id
        if (
            self._mask is None
            or encoder.tokenizer.cls_token_id is None
            or not hasattr(backbone, "embeddings")
        ):
            raise ConfigError(
                f"diffcse: {type(backbone).__name__} has no [CLS] and [MASK]; take a BERT or RoBERTa"
            )
        if dim != encoder.model.token_dim:
            raise ConfigError("diffcse: vectors stand for [CLS]; leave encoder.dense out")
        self.generator = _generator(encoder, self._generator)
        self.projection = nn.Sequential(
            *(nn.Linear(dim, 2 * dim, bias=False), nn.BatchNorm1d(2 * dim), nn.ReLU()),
            *(nn.Linear(2 * dim, dim, bias=False), nn.BatchNorm1d(dim, affine=False)),
        )
        self.discriminator: Any = copy.deepcopy(backbone)
        if encoder.model.packed:  # the copy is given padded texts, which run.gradient_checkpointing rules out
            self.discriminator.set_attn_implementation("sdpa")
        self.head = nn.Linear(dim, 2)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of what learns."""
        super().train(mode)
        self.generator.eval()
        return self

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        views = torch.cat([batch.vectors(model) for _ in range(2)])
        projected: Tensor = self.projection(views)
        one, other = normalize(projected.float(), dim=-1).chunk(2)
        contrastive = cross_entropy(one @ other.T / _TAU, torch.arange(len(one), device=one.device))
        ids = pad_sequence(batch.sequences(), batch_first=True, padding_value=_IGNORED)
        own = pad_sequence(list(torch.split(self._own.of(batch), batch.lengths.tolist())), batch_first=True)
        edited, replaced = self.edited(ids, own.to(ids.device))
        found = self._told(edited.repeat(2, 1), projected)
        detection = cross_entropy(
            found.float().flatten(0, 1), replaced.repeat(2, 1).flatten(), ignore_index=_IGNORED
        )
        parts = {"contrastive": contrastive.detach(), "replaced": detection.detach()}
        return {"loss": contrastive + _LAMBDA * detection, **parts}

    @torch.no_grad()
    def edited(
        self, ids: Int[Tensor, "text token"], own: Bool[Tensor, "text token"]
    ) -> tuple[Int[Tensor, "text token"], Int[Tensor, "text token"]]:
        """Texts with some of their own tokens replaced, and 1 where they are, else 0; -100 is padding."""
        there = ids != _IGNORED
        hidden = own & (torch.rand(ids.shape) < _MASKED).to(ids.device)
        masked = ids.masked_fill(hidden, self._mask).clamp_min(0)
        said = self.generator(input_ids=masked, attention_mask=there.long()).logits.argmax(-1)
        found = torch.where(own, said, ids)
        return found, (found != ids).long().masked_fill(~there, _IGNORED)

    def _told(
        self, ids: Int[Tensor, "text token"], vectors: Float[Tensor, "text dim"]
    ) -> Float[Tensor, "text token 2"]:
        def instead(_: object, __: object, embedded: Tensor) -> Tensor:
            return torch.cat([vectors[:, None].to(embedded.dtype), embedded[:, 1:]], dim=1)

        handle = self.discriminator.embeddings.register_forward_hook(instead)
        try:
            mask = (ids != _IGNORED).long()
            found = self.discriminator(input_ids=ids.clamp_min(0), attention_mask=mask).last_hidden_state
        finally:
            handle.remove()
        told: Tensor = self.head(found)
        return told


def _generator(encoder: Encoder, name: str) -> nn.Module:
    """A masked language model that learns nothing here."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    auto: Any = AutoModelForMaskedLM
    try:
        model = auto.from_pretrained(name, use_safetensors=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:  # none, another kind, or damaged
        raise ConfigError(f"generator {name}: no masked language model in safetensors") from error
    if AutoTokenizer.from_pretrained(name).get_vocab() != encoder.tokenizer.get_vocab():
        raise ConfigError(f"generator {name}: has another vocabulary than the backbone")
    found: nn.Module = model.requires_grad_(requires_grad=False).eval()
    return found
