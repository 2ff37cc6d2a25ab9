"""PromptBERT (Jiang et al., EMNLP 2022, arXiv 2201.04337): a text's vector is that of [MASK] in a sentence.

A text x is read within two templates, `This sentence of "x" means [MASK].` and `This sentence : "x" means
[MASK].`, which gives the vectors h and h' of [MASK]. What a template alone says is taken away (template
denoising): h_0 is the vector of [MASK] if x is left out and all other tokens keep their positions. The
loss (Eq. 6 there) is the mean of -log of exp(cos(h_i - h_0, h'_i - h'_0) / tau) over the sum of the same for
all texts j of the batch in the place of the second i, with tau = 0.05. As in the authors' code, differences
pass through a layer with tanh, which is not kept, and a text is encoded by the first template's h alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from pairkit.app.errors import ConfigError
from papers.methods.base import Encode, Method

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.05
_TEMPLATES = ('This sentence of "', '" means {mask}.'), ('This sentence : "', '" means {mask}.')


class Template(NamedTuple):
    """Tokens around a text, special ones included; `mask` counts from the end, `room` is for the text."""

    before: list[int]
    after: list[int]
    mask: int
    room: int


class PromptBert(Method):
    """The layer behind the differences."""

    lr = 1e-5
    encoder: ClassVar[dict[str, Any]] = {"pooling": "cls"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self._templates = templates(encoder)
        self.layer = nn.Sequential(nn.Linear(encoder.model.dim, encoder.model.dim), nn.Tanh())

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        one, other = (self._view(model, batch, template) for template in self._templates)
        return {"loss": cross_entropy(one @ other.T / _TAU, torch.arange(len(one), device=one.device))}

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """See `Method`."""
        del folder
        first, _ = templates(encoder)

        @torch.inference_mode()
        def encode(texts: list[str]) -> np.ndarray:
            found = np.empty((len(texts), encoder.model.token_dim), np.float32)
            for places, batch in encoder.token_batches(texts):
                found[places] = masked(encoder.model, framed(batch, first), first).float().cpu().numpy()
            return found

        return encode

    def _view(self, model: Any, batch: TextBatch, template: Template) -> Float[Tensor, "text dim"]:
        within = framed(batch, template)
        found: Tensor = self.layer(masked(model, within, template) - bias(model, within, template))
        return normalize(found.float(), dim=-1)


def templates(encoder: Encoder) -> list[Template]:
    """Both, as the model's tokenizer reads them."""
    tokenizer: Any = encoder.tokenizer
    if tokenizer.mask_token is None or tokenizer.cls_token is None:
        raise ConfigError("promptbert: this tokenizer has no [CLS] and [MASK]; take a BERT")
    found = []
    for before, after in _TEMPLATES:
        first = tokenizer.encode(before, add_special_tokens=False)
        last = tokenizer.encode(after.format(mask=tokenizer.mask_token), add_special_tokens=False)
        last = [*last, tokenizer.sep_token_id]
        mask = len(last) - last.index(tokenizer.mask_token_id)
        first = [tokenizer.cls_token_id, *first]
        room = (encoder.settings.max_length or tokenizer.model_max_length) - len(first) - len(last)
        if room < 1:
            raise ConfigError(
                f"promptbert: max_length {encoder.settings.max_length} leaves no room for text; raise it"
            )
        found.append(Template(first, last, mask, room))
    return found


def framed(batch: TextBatch, template: Template) -> TextBatch:
    """The texts, between [CLS] and [SEP], within a template."""
    device = batch.input_ids.device
    before, after = (torch.tensor(part, device=device) for part in template[:2])
    texts = [own[1:-1][: template.room] for own in batch.sequences()]
    return batch.with_sequences([torch.cat([before, own, after]) for own in texts])


def masked(model: Any, batch: TextBatch, template: Template) -> Float[Tensor, "text dim"]:
    """The vectors of [MASK]."""
    places = torch.from_numpy(np.cumsum(batch.lengths) - template.mask)
    states = batch.states(model)
    return states[places.to(states.device)]


def bias(model: Any, batch: TextBatch, template: Template) -> Float[Tensor, "text dim"]:
    """What the template alone gives in the place of each text; the same for all of one length."""
    size = len(template.before) + len(template.after)
    lengths, which = np.unique(batch.lengths, return_inverse=True)
    positions = np.tile(np.arange(size), (len(lengths), 1))
    positions[:, len(template.before) :] += (lengths - size)[:, None]
    device = batch.input_ids.device
    ids = torch.tensor([*template.before, *template.after], device=device).repeat(len(lengths), 1)
    places = torch.from_numpy(positions).to(device)
    found: Tensor = model.backbone(input_ids=ids, position_ids=places).last_hidden_state
    return found[:, size - template.mask][torch.from_numpy(which).to(device)]
