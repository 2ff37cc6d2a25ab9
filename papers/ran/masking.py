"""Whole-word masking (Devlin et al., 2019), 80/10/10 by default, determined by seed, epoch and row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

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
