"""Masked language modelling: whole-word masks, and a RAN with a head that predicts the masked tokens.

Masks (Devlin et al., 2019) are 80/10/10 by default, and determined by seed, epoch and row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast
from transformers.modeling_outputs import MaskedLMOutput
from transformers.utils.generic import can_return_tuple

from aoe_train import ran
from pairkit.base.errors import ConfigError
from papers.ran.corpus import Corpus
from papers.ran.settings import MaskSettings

IGNORED = -100


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that masking treats differently."""

    mask_id: int
    continues: np.ndarray
    special: np.ndarray

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
        """The vocabulary of a tokenizer; without `##` pieces each token is a word."""
        if tokenizer.mask_token_id is None:
            raise ConfigError(
                "the tokenizer has no mask token; use one for masked language modelling"
            )
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        special = np.zeros(len(words), bool)
        special[tokenizer.all_special_ids] = True
        return cls(
            tokenizer.mask_token_id,
            np.array([str(word).startswith("##") for word in words]),
            special,
        )


def mask_words(
    ids: np.ndarray,
    vocabulary: Vocabulary,
    settings: MaskSettings,
    key: tuple[int, int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Mask whole words of a sequence; returns the tokens that the model sees, and the labels."""
    random = np.random.default_rng(key)
    shown = ids.astype(np.int64)
    labels = np.full(len(ids), IGNORED, np.int64)
    hidden = _hidden(ids, vocabulary, settings.share, random)
    labels[hidden] = ids[hidden]
    draw = random.random(len(hidden))
    is_masked = draw < settings.masked
    is_swapped = ~is_masked & (draw < settings.masked + settings.random)
    swapped = hidden[is_swapped]
    ordinary = np.flatnonzero(~vocabulary.special)
    shown[hidden[is_masked]] = vocabulary.mask_id
    shown[swapped] = random.choice(ordinary, size=len(swapped))
    return shown, labels


def _hidden(
    ids: np.ndarray, vocabulary: Vocabulary, share: float, random: np.random.Generator
) -> np.ndarray:
    """Positions of random words, up to `share` of the tokens; words that would exceed it are skipped."""
    ordinary = ~vocabulary.special[ids]
    begins = ~vocabulary.continues[ids] | ~ordinary
    begins[1:] |= ~ordinary[:-1]
    word = np.cumsum(begins)
    positions = np.flatnonzero(ordinary)
    if len(positions) == 0:
        return positions
    words, sizes = np.unique(word[positions], return_counts=True)
    budget = max(1, round(share * len(positions)))
    chosen = []
    for index in random.permutation(len(words)):
        if sizes[index] <= budget:
            chosen.append(words[index])
            budget -= sizes[index]
        if budget == 0:
            break
    return positions[np.isin(word[positions], chosen)]


class MaskedSequences(Dataset[dict[str, Tensor]]):
    """The examples of all epochs in one sequence.

    The n-th example depends only on the seed and n, so a resumed run gets the same examples and masks as an
    undisturbed one without saved state.
    """

    def __init__(
        self,
        corpus: Corpus,
        vocabulary: Vocabulary,
        mask: MaskSettings,
        *,
        seed: int,
        examples: int,
    ) -> None:
        self.corpus = corpus
        self.vocabulary = vocabulary
        self.mask = mask
        self.seed = seed
        self.examples = examples

    def __len__(self) -> int:
        return self.examples

    def tokens(self, examples: int) -> int:
        """The number of tokens of the first `examples` examples."""
        lengths = np.diff(self.corpus.starts)
        epochs, rest = divmod(examples, len(self.corpus))
        last_rows = _shuffled(self.seed, epochs, len(self.corpus))[:rest]
        return epochs * int(lengths.sum()) + int(lengths[last_rows].sum())

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        epoch, index = divmod(number, len(self.corpus))
        row = int(_shuffled(self.seed, epoch, len(self.corpus))[index])
        key = (self.seed, epoch, row)
        shown, labels = mask_words(self.corpus[row], self.vocabulary, self.mask, key)
        return {
            "input_ids": torch.from_numpy(shown),
            "labels": torch.from_numpy(labels),
        }


def pad_examples(examples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """A padded batch (row, column) with its attention mask."""
    ids = [example["input_ids"] for example in examples]
    labels = [example["labels"] for example in examples]
    return {
        "input_ids": pad_sequence(ids, batch_first=True),
        "attention_mask": pad_sequence(
            [torch.ones_like(row) for row in ids], batch_first=True
        ),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }


@lru_cache(maxsize=2)  # a batch may span two epochs
def _shuffled(seed: int, epoch: int, rows: int) -> np.ndarray:
    return np.random.default_rng((seed, epoch)).permutation(rows)


class MaskedLMHead(nn.Module):
    """Maps token vectors to vectors that are compared with the embeddings."""

    def __init__(self, config: ran.RanConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = ran.RanLayerNorm(config)

    def forward(self, hidden: Float[Tensor, "token dim"]) -> Float[Tensor, "token dim"]:
        """LN(swish(dense(x)))."""
        return self.norm(F.silu(self.dense(self.dropout(hidden))))  # type: ignore[no-any-return]


class RanForMaskedLM(ran.RanPreTrainedModel):  # type: ignore[no-untyped-call]
    """RAN for pre-training; the output matrix is the embedding matrix."""

    _tied_weights_keys = {"lm_head.weight": "ran.embed_tokens.weight"}  # noqa: RUF012
    accepts_loss_kwargs = True  # the trainer then passes `num_items_in_batch`

    def __init__(self, config: ran.RanConfig) -> None:
        super().__init__(config)
        self.ran = ran.RanModel(config)
        self.head = MaskedLMHead(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Int[Tensor, "row column"],
        attention_mask: Int[Tensor, "row column"] | None = None,
        labels: Int[Tensor, "row column"] | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> MaskedLMOutput:
        """Predict tokens."""
        hidden = self.ran(input_ids, attention_mask).last_hidden_state
        if labels is None:
            return MaskedLMOutput(logits=self.lm_head(self.head(hidden)))
        labelled = labels != IGNORED
        logits = self.lm_head(self.head(hidden[labelled]))
        total = F.cross_entropy(logits.float(), labels[labelled], reduction="sum")
        count = num_items_in_batch
        if count is None:
            # Without labels, the loss is 0 instead of NaN.
            count = labelled.sum().clamp(min=1)
        return MaskedLMOutput(loss=total / count, logits=logits)
