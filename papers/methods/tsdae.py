"""TSDAE (Wang, Reimers and Gurevych, 2021, arXiv 2104.06979): a denoising autoencoder of texts.

60 % of the tokens of a text x are deleted, and a decoder has to restore x from the vector of the damaged text
x~. The loss (Eq. 1 there) is the mean of -log P(x_t | x_1 … x_(t-1), vector of x~) over all tokens. As in the
paper, the decoder is the backbone with shared weights and with cross-attention to the vector in each layer.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from pairkit.base.errors import ConfigError
from papers.methods.base import IGNORED, Method, OrdinaryTokens

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor, nn

    from aoe_train import Encoder, TextBatch

_DELETED = 0.6


class Tsdae(Method):
    """Trains the model and the decoder."""

    lr = 3e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.decoder = _decoder(encoder)
        self._ordinary = OrdinaryTokens(encoder)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        vectors = damaged(batch, _DELETED, self._ordinary.mask(batch)).vectors(model)
        tokens = pad_sequence(batch.sequences(), batch_first=True, padding_value=IGNORED)
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        output = self.decoder(
            input_ids=inputs.clamp_min(0),
            attention_mask=(inputs != IGNORED).long(),
            encoder_hidden_states=vectors[:, None].to(next(self.decoder.parameters()).dtype),
            use_cache=False,
        )
        return {"loss": cross_entropy(output.logits.float().flatten(0, 1), targets.flatten())}


def damaged(batch: TextBatch, share: float, ordinary: Bool[Tensor, " token"]) -> TextBatch:
    """Texts without a random share of their ordinary tokens; one of these always stays."""
    kept = []
    for tokens, mask in zip(batch.sequences(), torch.split(ordinary, batch.lengths.tolist()), strict=True):
        stays = ~mask
        positions = torch.nonzero(mask).flatten()
        drawn = torch.rand(len(positions))
        if len(positions):
            stays[positions[(drawn >= share) | (drawn == drawn.max())]] = True
        kept.append(tokens[stays.to(tokens.device)])
    return batch.with_sequences(kept)


def _decoder(encoder: Encoder) -> nn.Module:
    """The backbone as a decoder with cross-attention; it shares all other weights with the encoder."""
    backbone: Any = encoder.model.backbone
    if encoder.model.dim != encoder.model.token_dim:
        raise ConfigError(
            f"tsdae: the decoder needs vectors of {encoder.model.token_dim} dimensions, the model has"
            f" {encoder.model.dim}; remove encoder.dense"
        )
    config = copy.deepcopy(backbone.config)
    config.is_decoder, config.add_cross_attention = True, True
    kind = type(backbone).__name__
    try:
        auto = cast("Any", AutoModelForCausalLM)
        decoder = auto.from_config(config, attn_implementation="eager")
    except ValueError as error:
        raise ConfigError(f"tsdae: {kind} has no decoder; use a BERT or RoBERTa") from error
    names = {name for name, _ in decoder.base_model.named_parameters()}
    if not any("crossattention" in name for name in names):
        raise ConfigError(f"tsdae: {kind} has no cross-attention; use a BERT or RoBERTa")
    for name, weight in backbone.named_parameters():
        if name in names:
            module, _, last = name.rpartition(".")
            setattr(decoder.base_model.get_submodule(module), last, weight)
    decoder.get_output_embeddings().weight = backbone.get_input_embeddings().weight
    return cast("nn.Module", decoder)
