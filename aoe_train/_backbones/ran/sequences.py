"""The order in which pre-training sees its sequences, masked anew in every epoch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from aoe_train._backbones.ran.corpus import Corpus
from aoe_train._backbones.ran.masking import IGNORED, Vocabulary, mask_words
from aoe_train._pretrain_settings import MaskSettings


class MaskedSequences(Dataset[dict[str, Tensor]]):
    """All epochs one after the other as a single run of examples, to be read in order.

    The n-th example is a function of the seed and n, so a resumed run goes on with the same examples and
    masks as an undisturbed one, without a state of its own.
    """

    def __init__(
        self, corpus: Corpus, vocabulary: Vocabulary, mask: MaskSettings, *, seed: int, examples: int
    ) -> None:
        self.corpus, self.vocabulary, self.mask = corpus, vocabulary, mask
        self.seed, self.examples = seed, examples

    def __len__(self) -> int:
        return self.examples

    def tokens(self, examples: int) -> int:
        """Of the first so many examples together."""
        lengths = np.diff(self.corpus.starts)
        epochs, rest = divmod(examples, len(self.corpus))
        begun = _shuffled(self.seed, epochs, len(self.corpus))[:rest]
        return epochs * int(lengths.sum()) + int(lengths[begun].sum())

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        epoch, place = divmod(number, len(self.corpus))
        row = int(_shuffled(self.seed, epoch, len(self.corpus))[place])
        key = (self.seed, epoch, row)
        shown, labels = mask_words(self.corpus[row], self.vocabulary, self.mask, key)
        return {"input_ids": torch.from_numpy(shown), "labels": torch.from_numpy(labels)}


def pad_examples(examples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """A batch (row, column), with an attention mask that says where it is padding."""
    ids = [example["input_ids"] for example in examples]
    labels = [example["labels"] for example in examples]
    return {
        "input_ids": pad_sequence(ids, batch_first=True),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }


@lru_cache(maxsize=2)  # a batch may span two epochs
def _shuffled(seed: int, epoch: int, rows: int) -> np.ndarray:
    return np.random.default_rng((seed, epoch)).permutation(rows)
