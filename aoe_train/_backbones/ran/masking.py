"""Whole-word masking (Devlin et al., 2019), 80/10/10 by default, decided by seed, epoch and row alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from aoe_train._pretrain_settings import MaskSettings

IGNORED = -100


@dataclass(frozen=True)
class Vocabulary:
    """What masking has to know of a tokenizer.

    Attributes:
        mask_id: Number of the mask token.
        continues: bool (token,): goes on with the word before it, as WordPiece's `##ing`.
        special: bool (token,): never predicted and never put in another's place.
    """

    mask_id: int
    continues: np.ndarray
    special: np.ndarray

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Vocabulary:
        """Read it off a tokenizer; without `##` pieces each token is a word.

        Raises:
            ConfigError: The tokenizer has no mask token.
        """
        if tokenizer.mask_token_id is None:
            raise ConfigError("the tokenizer has no mask token; use one made for masked language modelling")
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        special = np.zeros(len(words), bool)
        special[tokenizer.all_special_ids] = True
        return cls(tokenizer.mask_token_id, np.array([str(word).startswith("##") for word in words]), special)


def mask_words(
    ids: np.ndarray, vocabulary: Vocabulary, settings: MaskSettings, key: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Hide whole words of a sequence.

    Args:
        ids: int (token,).
        vocabulary: Of its tokenizer.
        settings: How many, and what is shown instead.
        key: Seed, epoch and row, which alone decide the choice.

    Returns:
        int64 (token,): what the model sees, and the labels: the token where it is hidden, else -100.
    """
    random = np.random.default_rng(key)
    shown, labels = ids.astype(np.int64), np.full(len(ids), IGNORED, np.int64)
    hidden = _hidden(ids, vocabulary, settings.share, random)
    labels[hidden] = ids[hidden]
    draw = random.random(len(hidden))
    ordinary = np.flatnonzero(~vocabulary.special)
    shown[hidden[draw < settings.masked]] = vocabulary.mask_id
    swapped = hidden[(draw >= settings.masked) & (draw < settings.masked + settings.random)]
    shown[swapped] = random.choice(ordinary, size=len(swapped))
    return shown, labels


def _hidden(ids: np.ndarray, vocabulary: Vocabulary, share: float, random: np.random.Generator) -> np.ndarray:
    """Places of words drawn until they are `share` of the tokens; a word that would exceed it is left out."""
    ordinary = ~vocabulary.special[ids]
    begins = ~vocabulary.continues[ids] | ~ordinary
    begins[1:] |= ~ordinary[:-1]
    word = np.cumsum(begins)
    places = np.flatnonzero(ordinary)
    if len(places) == 0:
        return places
    words, sizes = np.unique(word[places], return_counts=True)
    budget = max(1, round(share * len(places)))
    chosen = []
    for index in random.permutation(len(words)):
        if sizes[index] <= budget:
            chosen.append(words[index])
            budget -= sizes[index]
        if budget == 0:
            break
    return places[np.isin(word[places], chosen)]
