"""PromptBERT (Jiang et al., EMNLP 2022, arXiv 2201.04337): a text's vector is that of [MASK] in a sentence.

A text x is read within two templates, `This sentence of "x" means [MASK].` and `This sentence : "x" means
[MASK].`, which gives the vectors h and h' of [MASK]. What a template alone says is taken away (template
denoising): h_0 is the vector of [MASK] where x is left out and all other tokens keep their positions. The
loss (Eq. 6 there) is the mean of -log of exp(cos(h_i - h_0, h'_i - h'_0) / tau) over the sum of the same for
all texts j of the batch in the place of the second i, with tau = 0.05. As in the authors' code, differences
pass through a layer with tanh, which is not kept, and a text is encoded by the first template's h alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from aoe_train._baselines.way import TEXTS, Rows, Texts, TrainedOn, TrainingWay
from aoe_train._frame import Frame, raw_tokenizer
from aoe_train._objectives.similarity import unit
from aoe_train._template import reading
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train._encoder import Encoder
    from aoe_train._text_model import TextModel

_TAU = 0.05
_SECOND = 'This sentence : "{{text}}" means {mask}.'


class PromptBert(TrainingWay):
    """The layer behind the differences."""

    def __init__(self, encoder: Encoder, given: TrainedOn = TEXTS) -> None:
        super().__init__(encoder, given)
        if encoder.model.pooling != "mask" or not isinstance(given.prompts, str):
            raise ConfigError(
                "preset promptbert: expected the pooling mask, and one prompt for all texts; leave both as"
                " the preset has them"
            )
        raw = raw_tokenizer(encoder.tokenizer)
        second = _SECOND.format(mask=encoder.tokenizer.mask_token)
        self._first, self._second = (reading(raw, words).frame for words in (given.prompts, second))
        self._room = self._second.room(encoder.settings.max_length or 0)
        self.layer = nn.Sequential(nn.Linear(encoder.model.dim, encoder.model.dim), nn.Tanh())

    def forward(
        self, model: TextModel, texts: Texts, numbers: Int[Tensor, " text"], more: Rows
    ) -> dict[str, Tensor]:
        """See `TrainingWay`."""
        del numbers, more
        start, end = len(self._first.before), len(self._first.after)
        own = [tokens[start : len(tokens) - end] for tokens in texts.sequences()]
        again = framed([tokens[: self._room] for tokens in own], self._second)
        one = self._view(texts.vectors(model) - bias(model, texts, self._first))
        other = self._view(again.vectors(model) - bias(model, again, self._second))
        return {"loss": cross_entropy(one @ other.T / _TAU, torch.arange(len(one), device=one.device))}

    def _view(self, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
        found: Tensor = self.layer(vectors)
        return unit(found.float())


def framed(own: list[Int[Tensor, " token"]], frame: Frame) -> Texts:
    """Texts of these tokens within a template."""
    device = own[0].device
    before, after = (torch.tensor(part, device=device) for part in frame)
    whole = [torch.cat([before, tokens, after]) for tokens in own]
    return Texts(torch.cat(whole), np.array([len(tokens) for tokens in whole]))


def bias(model: TextModel, texts: Texts, frame: Frame) -> Float[Tensor, "text dim"]:
    """What the template alone gives in the place of each text; the same for all of one length."""
    size = len(frame.before) + len(frame.after)
    lengths, which = np.unique(texts.lengths, return_inverse=True)
    positions = np.tile(np.arange(size), (len(lengths), 1))
    positions[:, len(frame.before) :] += (lengths - size)[:, None]
    device = texts.input_ids.device
    ids = torch.tensor([*frame.before, *frame.after], device=device).repeat(len(lengths))
    sizes = np.full(len(lengths), size)
    places = torch.from_numpy(positions.ravel()).to(device)
    found: Tensor = model(ids, sizes, np.ones_like(sizes), positions=places)
    return found[torch.from_numpy(which).to(device)]
