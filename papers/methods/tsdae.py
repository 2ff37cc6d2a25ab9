"""TSDAE (Wang, Reimers and Gurevych, 2021, arXiv 2104.06979): a text is restored from its vector.

Each text x loses 60 % of its words; a decoder has to say x again, seeing of the damaged text x~ nothing but
its vector. The loss (Eq. 1 there) is the mean of -log P(x_t | x_1 … x_(t-1), vector of x~) over all tokens.
As in the paper, the decoder is the backbone once more, tied to it by sharing its weights, with an attention
to the vector in each layer; where a single vector is attended to, that adds a linear map of it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from pairkit.app.errors import ConfigError
from papers.methods.base import Method, OwnTokens

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor, nn

    from aoe_train import Encoder, TextBatch

_DELETED = 0.6
_IGNORED = -100


class Tsdae(Method):
    """The decoder."""

    lr = 3e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self.decoder = _decoder(encoder)
        self._own = OwnTokens(encoder)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        vectors = damaged(batch, _DELETED, self._own.of(batch)).vectors(model)
        whole = pad_sequence(batch.sequences(), batch_first=True, padding_value=_IGNORED)
        read, wanted = whole[:, :-1], whole[:, 1:]
        found = self.decoder(
            input_ids=read.clamp_min(0),
            attention_mask=(read != _IGNORED).long(),
            encoder_hidden_states=vectors[:, None].to(self._dtype),
            use_cache=False,
        )
        logits = found.logits.float().flatten(0, 1)
        return {"loss": cross_entropy(logits, wanted.flatten(), ignore_index=_IGNORED)}

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.decoder.parameters()).dtype


def damaged(batch: TextBatch, share: float, own_tokens: Bool[Tensor, " token"]) -> TextBatch:
    """Texts without a share of their tokens, drawn at random; at least one of each text's own stays."""
    kept = []
    for tokens, mask in zip(batch.sequences(), torch.split(own_tokens, batch.lengths.tolist()), strict=True):
        stays = ~mask
        own = torch.nonzero(mask).flatten()
        drawn = torch.rand(len(own))
        if len(own):
            stays[own[(drawn >= share) | (drawn == drawn.max())]] = True
        kept.append(tokens[stays.to(tokens.device)])
    return batch.with_sequences(kept)


def _decoder(encoder: Encoder) -> nn.Module:
    """The backbone as a decoder that attends to a vector, and shares all weights that both have."""
    backbone: Any = encoder.model.backbone
    if encoder.model.dim != encoder.model.token_dim:
        raise ConfigError(
            f"tsdae: the decoder reads vectors of {encoder.model.token_dim} numbers, as its own are,"
            f" and the model's have {encoder.model.dim}; leave encoder.dense out"
        )
    config = copy.deepcopy(backbone.config)
    config.is_decoder, config.add_cross_attention = True, True
    kind = type(backbone).__name__
    try:
        auto = cast("Any", AutoModelForCausalLM)
        decoder = auto.from_config(config, attn_implementation="eager")
    except ValueError as error:
        raise ConfigError(f"tsdae: {kind} has no decoder; take a BERT or RoBERTa") from error
    own = dict(decoder.base_model.named_parameters())
    if not any("crossattention" in name for name in own):
        raise ConfigError(f"tsdae: {kind} attends to no vector; take a BERT or RoBERTa")
    for name, weight in backbone.named_parameters():
        if name in own:
            module, _, last = name.rpartition(".")
            setattr(decoder.base_model.get_submodule(module), last, weight)
    decoder.get_output_embeddings().weight = backbone.get_input_embeddings().weight
    return cast("nn.Module", decoder)
