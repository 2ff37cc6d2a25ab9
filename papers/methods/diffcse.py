"""DiffCSE (Chuang et al., NAACL 2022, arXiv 2204.10298): SimCSE with replaced-token detection.

The loss (Section 3 there) is L_contrast + 0.005 L_RTD. L_contrast is that of unsupervised SimCSE, tau = 0.05,
on vectors after a two-layer projection with batch normalisation. For L_RTD, 30 % of a text's tokens are
masked and a frozen masked language model (the generator) predicts them. A discriminator then classifies each
token of the edited text as original or replaced: the mean cross-entropy over all tokens. It starts as a copy
of the backbone, and its [CLS] embedding is the projected vector of the text. As in the authors' code, the
generator predicts the most likely token at every position. Projection and discriminator are discarded after
training.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from safetensors import SafetensorError
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence

from pairkit.base.errors import ConfigError, RemoteError
from papers.methods.base import IGNORED, Method, OrdinaryTokens, info_nce

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.05
_MASKED = 0.3  # share of tokens
_LAMBDA = 0.005  # weight of the detection


class DiffCse(Method):
    """Holds projection and discriminator; `generator` is a masked language model, a folder or Hub id."""

    lr = 7e-6

    def __init__(self, generator: str) -> None:
        super().__init__()
        self._generator = generator

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        backbone = encoder.model.backbone
        dim = encoder.model.dim
        self._ordinary = OrdinaryTokens(encoder)
        self._mask_id = encoder.tokenizer.mask_token_id
        has_cls = encoder.tokenizer.cls_token_id is not None
        if self._mask_id is None or not has_cls or not hasattr(backbone, "embeddings"):
            raise ConfigError(
                f"diffcse: {type(backbone).__name__} has no [CLS] and [MASK]; use a BERT or RoBERTa"
            )
        if dim != encoder.model.token_dim:
            raise ConfigError(
                "diffcse: the vector replaces the embedding of [CLS]; remove encoder.dense"
            )
        self.generator = _generator(encoder, self._generator)
        self.projection = nn.Sequential(
            nn.Linear(dim, 2 * dim, bias=False),
            nn.BatchNorm1d(2 * dim),
            nn.ReLU(),
            nn.Linear(2 * dim, dim, bias=False),
            nn.BatchNorm1d(dim, affine=False),
        )
        self.discriminator: Any = copy.deepcopy(backbone)
        if encoder.model.packed:  # the discriminator reads padded batches
            self.discriminator.set_attn_implementation("sdpa")
        self.head = nn.Linear(dim, 2)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all modules but the generator, which stays in evaluation mode."""
        super().train(mode)
        self.generator.eval()
        return self

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        views = torch.cat([batch.vectors(model) for _ in range(2)])
        projected: Tensor = self.projection(views)
        first, second = normalize(projected.float(), dim=-1).chunk(2)
        contrastive = info_nce(first, second, _TAU)

        ids = pad_sequence(batch.sequences(), batch_first=True, padding_value=IGNORED)
        mask = self._ordinary.mask(batch)
        masks = list(torch.split(mask, batch.lengths.tolist()))
        ordinary = pad_sequence(masks, batch_first=True).to(ids.device)
        edited, replaced = self.edited(ids, ordinary)

        logits = self._detect(edited.repeat(2, 1), projected)
        labels = replaced.repeat(2, 1)
        detection = cross_entropy(
            logits.float().flatten(0, 1),
            labels.flatten(),
        )
        return {
            "loss": contrastive + _LAMBDA * detection,
            "contrastive": contrastive.detach(),
            "replaced": detection.detach(),
        }

    @torch.no_grad()
    def edited(
        self, ids: Int[Tensor, "text token"], ordinary: Bool[Tensor, "text token"]
    ) -> tuple[Int[Tensor, "text token"], Int[Tensor, "text token"]]:
        """The edited texts, and labels: 1 for a replaced token, 0 for an original one, -100 for padding."""
        is_token = ids != IGNORED
        is_masked = ordinary & (torch.rand(ids.shape) < _MASKED).to(ids.device)
        masked = ids.masked_fill(is_masked, self._mask_id).clamp_min(0)
        logits = self.generator(input_ids=masked, attention_mask=is_token.long()).logits
        edited = torch.where(ordinary, logits.argmax(-1), ids)
        is_replaced = (edited != ids).long()
        return edited, is_replaced.masked_fill(~is_token, IGNORED)

    def _detect(
        self, ids: Int[Tensor, "text token"], vectors: Float[Tensor, "text dim"]
    ) -> Float[Tensor, "text token 2"]:
        def replace_cls(_: object, __: object, embedded: Tensor) -> Tensor:
            cls = vectors[:, None].to(embedded.dtype)
            return torch.cat([cls, embedded[:, 1:]], dim=1)

        mask = (ids != IGNORED).long()
        handle = self.discriminator.embeddings.register_forward_hook(replace_cls)
        try:
            output = self.discriminator(input_ids=ids.clamp_min(0), attention_mask=mask)
        finally:
            handle.remove()
        logits: Tensor = self.head(output.last_hidden_state)
        return logits


def _generator(encoder: Encoder, name: str) -> nn.Module:
    """A frozen masked language model with the encoder's vocabulary."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    auto: Any = AutoModelForMaskedLM
    try:
        model = auto.from_pretrained(name, use_safetensors=True)
    # The model is absent, of another kind, or damaged.
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        if not Path(name).is_dir():
            message = f"generator {name}: no such folder, and the Hub lacks it or can't be reached; give a folder"
            raise RemoteError(message) from error
        raise ConfigError(
            f"generator {name}: not a masked language model in safetensors"
        ) from error
    if AutoTokenizer.from_pretrained(name).get_vocab() != encoder.tokenizer.get_vocab():
        raise ConfigError(
            f"generator {name}: its vocabulary differs from the backbone's"
        )
    frozen: nn.Module = model.requires_grad_(requires_grad=False).eval()
    return frozen
