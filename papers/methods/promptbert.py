"""PromptBERT (Jiang et al., EMNLP 2022, arXiv 2201.04337): a text's vector is that of [MASK] in a template.

A text x is read in two templates, `This sentence of "x" means [MASK].` and `This sentence : "x" means
[MASK].`, which give the vectors h and h' of [MASK]. Template denoising subtracts h_0, the vector of [MASK] if
x is left out and all other tokens keep their positions. The loss (Eq. 6 there) is InfoNCE between h_i - h_0
and h'_i - h'_0 over the texts i of the batch, with tau = 0.05. As in the authors' code, the differences pass
through a linear layer with tanh, which is discarded after training, and texts are encoded with h only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from pairkit.base.errors import ConfigError
from papers.methods.base import Encode, Method, in_batches, info_nce

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.05
_TEMPLATES = (
    ('This sentence of "', '" means {mask}.'),
    ('This sentence : "', '" means {mask}.'),
)


class Template(NamedTuple):
    """The tokens around a text, with special ones."""

    before: list[int]
    after: list[int]
    mask: int  # position of [MASK], counted from the end
    max_length: int  # tokens of the text


class PromptBert(Method):
    """Trains the model and the linear layer."""

    lr = 1e-5
    encoder: ClassVar[dict[str, Any]] = {"pooling": "cls"}

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        self._templates = templates(encoder)
        self.layer = nn.Sequential(
            nn.Linear(encoder.model.dim, encoder.model.dim), nn.Tanh()
        )

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        first, second = self._templates
        first_view = self._view(model, batch, first)
        second_view = self._view(model, batch, second)
        return {"loss": info_nce(first_view, second_view, _TAU)}

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """See `Method`."""
        del folder
        first, _ = templates(encoder)

        def vectors_of(batch: TextBatch) -> Tensor:
            filled = fill_template(batch, first)
            return mask_vectors(encoder.model, filled, first)

        return in_batches(encoder, vectors_of)

    def _view(
        self, model: Any, batch: TextBatch, template: Template
    ) -> Float[Tensor, "text dim"]:
        filled = fill_template(batch, template)
        vectors = mask_vectors(model, filled, template)
        difference = vectors - template_bias(model, filled, template)
        return normalize(self.layer(difference).float(), dim=-1)


def templates(encoder: Encoder) -> list[Template]:
    """Both templates, tokenised for the encoder."""
    tokenizer: Any = encoder.tokenizer
    if tokenizer.mask_token is None or tokenizer.cls_token is None:
        raise ConfigError(
            "promptbert: the tokenizer has no [CLS] and [MASK]; use a BERT"
        )
    max_length = encoder.settings.max_length
    result = []
    for before, after in _TEMPLATES:
        closing = after.format(mask=tokenizer.mask_token)
        first = tokenizer.encode(before, add_special_tokens=False)
        last = tokenizer.encode(closing, add_special_tokens=False)
        template = Template(
            before=[tokenizer.cls_token_id, *first],
            after=[*last, tokenizer.sep_token_id],
            mask=len(last) + 1 - last.index(tokenizer.mask_token_id),
            max_length=(max_length or tokenizer.model_max_length)
            - len(first)
            - len(last)
            - 2,
        )
        if template.max_length < 1:
            raise ConfigError(
                f"promptbert: max_length {max_length} leaves no tokens for text; raise it"
            )
        result.append(template)
    return result


def fill_template(batch: TextBatch, template: Template) -> TextBatch:
    """The texts, without their [CLS] and [SEP], inside a template."""
    device = batch.input_ids.device
    before = torch.tensor(template.before, device=device)
    after = torch.tensor(template.after, device=device)
    filled = []
    for tokens in batch.sequences():
        text = tokens[1:-1]
        filled.append(torch.cat([before, text[: template.max_length], after]))
    return batch.with_sequences(filled)


def mask_vectors(
    model: Any, filled: TextBatch, template: Template
) -> Float[Tensor, "text dim"]:
    """The vector of [MASK] in each text."""
    positions = torch.from_numpy(np.cumsum(filled.lengths) - template.mask)
    states = filled.states(model)
    return states[positions.to(states.device)]


def template_bias(
    model: Any, filled: TextBatch, template: Template
) -> Float[Tensor, "text dim"]:
    """The vector of [MASK] without the text, at its position with the text; computed once per length."""
    tokens = [*template.before, *template.after]
    size = len(tokens)
    lengths, row_of_text = np.unique(filled.lengths, return_inverse=True)
    positions = np.tile(np.arange(size), (len(lengths), 1))
    positions[:, len(template.before) :] += (lengths - size)[:, None]
    device = filled.input_ids.device
    ids = torch.tensor(tokens, device=device).repeat(len(lengths), 1)
    position_ids = torch.from_numpy(positions).to(device)
    states: Tensor = model.backbone(
        input_ids=ids, position_ids=position_ids
    ).last_hidden_state
    of_mask = states[:, size - template.mask]
    return of_mask[torch.from_numpy(row_of_text).to(device)]
