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
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from aoe_train._backbones.load import check_size, find_folder
from aoe_train._backbones.quiet import quietly
from aoe_train._baselines.own_tokens import OwnTokens
from aoe_train._baselines.way import TEXTS, Rows, Texts, TrainedOn, TrainingWay
from aoe_train._model_folder import check_settings
from aoe_train._objectives.similarity import unit
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from aoe_train._encoder import Encoder
    from aoe_train._text_model import TextModel

_TAU, _MASKED, _LAMBDA = 0.05, 0.3, 0.005
_IGNORED = -100


class DiffCse(TrainingWay):
    """Generator, projection and discriminator."""

    def __init__(self, encoder: Encoder, given: TrainedOn = TEXTS) -> None:
        super().__init__(encoder, given)
        backbone, dim = encoder.model.backbone, encoder.model.dim
        self._own = OwnTokens(encoder, given.prompts)
        self._mask = encoder.tokenizer.mask_token_id
        if (
            self._mask is None
            or encoder.tokenizer.cls_token_id is None
            or not hasattr(backbone, "embeddings")
        ):
            raise ConfigError(
                f"preset diffcse: {type(backbone).__name__} has no [CLS] and [MASK]; take a BERT or RoBERTa"
            )
        if dim != encoder.model.token_dim:
            raise ConfigError("preset diffcse: vectors stand for [CLS]; leave encoder.dense out")
        self.generator = _generator(encoder, given.generator)
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

    def forward(
        self, model: TextModel, texts: Texts, numbers: Int[Tensor, " text"], more: Rows
    ) -> dict[str, Tensor]:
        """See `TrainingWay`."""
        del numbers, more
        views = torch.cat([texts.vectors(model) for _ in range(2)])
        projected: Tensor = self.projection(views)
        one, other = unit(projected.float()).chunk(2)
        contrastive = cross_entropy(one @ other.T / _TAU, torch.arange(len(one), device=one.device))
        ids = pad_sequence(texts.sequences(), batch_first=True, padding_value=_IGNORED)
        own = pad_sequence(list(torch.split(self._own.of(texts), texts.lengths.tolist())), batch_first=True)
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


def _generator(encoder: Encoder, name: str | None) -> nn.Module:
    """A masked language model that learns nothing here.

    Raises:
        ConfigError: None is named, or it is none, or of another vocabulary.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    if name is None:
        raise ConfigError(
            "preset diffcse: a masked language model edits the texts; give one of the same vocabulary,"
            " such as --set objective.generator=distilbert/distilbert-base-uncased"
        )
    folder = find_folder(name)
    check_settings(folder)
    check_size(folder)
    auto: Any = AutoModelForMaskedLM
    try:
        with quietly():
            model, told = auto.from_pretrained(folder, use_safetensors=True, output_loading_info=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:  # none, another kind, or damaged
        raise ConfigError(f"objective.generator {name}: no masked language model in safetensors") from error
    if told["missing_keys"]:
        raise ConfigError(f"objective.generator {name}: has no head that says which token was masked")
    if AutoTokenizer.from_pretrained(folder).get_vocab() != encoder.tokenizer.get_vocab():
        raise ConfigError(f"objective.generator {name}: has another vocabulary than the backbone")
    found: nn.Module = model.requires_grad_(requires_grad=False).eval()
    return found
