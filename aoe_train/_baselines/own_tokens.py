"""Which tokens of a batch are the texts' own, for ways of training that change texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from aoe_train._frame import raw_tokenizer
from aoe_train._template import reading
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor

    from aoe_train._baselines.way import Texts
    from aoe_train._encoder import Encoder


class OwnTokens:
    """Tells which tokens are a text's own: none of its prompt, and no special one such as [CLS].

    A way that takes tokens away, moves or replaces them leaves all others as they are.
    """

    def __init__(self, encoder: Encoder, prompts: str | Sequence[str]) -> None:
        """Find out what stands around texts.

        Raises:
            ConfigError: They have several prompts.
        """
        if not isinstance(prompts, str):
            raise ConfigError("prompts: this preset changes texts, which needs one prompt for all, or none")
        read = reading(raw_tokenizer(encoder.tokenizer), prompts)
        self._special = torch.tensor(sorted(encoder.tokenizer.all_special_ids))
        self._before = torch.tensor([*read.frame.before, *read.alone])
        self._after = len(read.frame.after)

    def of(self, texts: Texts) -> Bool[Tensor, " token"]:
        """Whether each token is one, on the CPU."""
        ids = texts.input_ids.cpu()
        found, lengths = ~torch.isin(ids, self._special), texts.lengths.tolist()
        for own, tokens in zip(torch.split(found, lengths), torch.split(ids, lengths), strict=True):
            # A text's first token may swallow the prompt's last ones, as with "re" and "started".
            reach = min(len(tokens), len(self._before))
            lead = int((tokens[:reach] == self._before[:reach]).long().cumprod(0).sum())
            own[:lead] = False
            own[len(tokens) - self._after :] = False
        return found
