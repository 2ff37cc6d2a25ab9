"""IS-BERT (Zhang et al., EMNLP 2020, arXiv 2009.12061): a text's vector knows its own n-grams from others'.

Local features F_i of each token come from filters of widths 1, 3 and 5 over the backbone's tokens, and the
text's vector E is their mean: `aoe_train._ngrams`, which stays part of the model. What is maximised is the
Jensen-Shannon estimate of their mutual information (Eq. 3 there): the mean of -sp(-F_i . E(x)) over tokens i
of x, less the mean of sp(F_i . E(x')) over the batch's other texts x', with sp the softplus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import softplus

from aoe_train._baselines.way import TEXTS, Rows, Texts, TrainedOn, TrainingWay
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train._encoder import Encoder
    from aoe_train._text_model import TextModel


class IsBert(TrainingWay):
    """Nothing that learns beside the model."""

    def __init__(self, encoder: Encoder, given: TrainedOn = TEXTS) -> None:
        super().__init__(encoder, given)
        model = encoder.model
        if model.ngrams is None or model.pooling == "mask" or model.dim != model.token_dim:
            raise ConfigError(
                "preset isbert: tokens are compared with the pooled vector of their n-gram features; leave"
                " encoder.ngrams as the preset has it, and encoder.dense and the pooling mask out"
            )

    def forward(
        self, model: TextModel, texts: Texts, numbers: Int[Tensor, " text"], more: Rows
    ) -> dict[str, Tensor]:
        """See `TrainingWay`."""
        del more
        states = model.states(texts.input_ids, texts.lengths)
        vectors = model.vectors(states, texts.lengths, np.ones_like(texts.lengths), texts.prompt_lengths)
        owners = torch.from_numpy(np.repeat(np.arange(len(texts.lengths)), texts.lengths))
        return {"loss": information_loss(states[-1].float(), vectors, owners.to(vectors.device), numbers)}


def information_loss(
    local: Float[Tensor, "token dim"],
    vectors: Float[Tensor, "text dim"],
    owners: Int[Tensor, " token"],
    numbers: Int[Tensor, " text"],
) -> Float[Tensor, ""]:
    """The negative of the estimate.

    Args:
        local: Features of all texts' tokens.
        vectors: The texts'.
        owners: The text of each token.
        numbers: Of the texts; a copy of a token's text is no other text.
    """
    scores = local @ vectors.T
    own = torch.nn.functional.one_hot(owners, len(vectors)).bool()
    others = numbers[owners][:, None] != numbers
    positive = softplus(-scores).masked_fill(~own, 0).sum() / len(local)
    return positive + softplus(scores).masked_fill(~others, 0).sum() / others.sum().clamp_min(1)
