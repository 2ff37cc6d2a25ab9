"""What a tokenizer puts around every text: special tokens, and the prompt where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast


class SpecialTokens(NamedTuple):
    """Token ids before and after a text's own."""

    before: list[int]
    after: list[int]

    def text_limit(self, max_length: int) -> int:
        """How many tokens of its own a text may have in a piece of `max_length` tokens."""
        size = len(self.before) + len(self.after)
        if size >= max_length:
            raise ConfigError(
                f"max_length {max_length} leaves no room for text: prompt and special tokens take {size};"
                " raise it or shorten the prompt"
            )
        return max_length - size


def raw_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """The tokenizer's Rust part, set not to cut and not to pad: many a saved one does both unasked.

    That is no lasting change: transformers sets both anew on every call.
    """
    if not tokenizer.is_fast:
        raise ConfigError(
            f"{type(tokenizer).__name__} has no tokenizer.json; use a model with a fast tokenizer"
        )
    raw = tokenizer.backend_tokenizer
    raw.no_truncation()
    raw.no_padding()
    return raw


def is_panic(error: BaseException) -> bool:
    """Whether the tokenizer gave up within: a rule of its own is damaged, or takes too long over a text."""
    return type(error).__name__ == "PanicException"  # of pyo3, which has no name for it to import


def special_tokens_of(raw: Tokenizer) -> SpecialTokens:
    """The tokens that a tokenizer adds, seen in how it encodes a letter."""
    try:
        encoding = raw.encode("a")
    except BaseException as error:
        if is_panic(error):
            raise DataError("the tokenizer's rules can't read the letter 'a'; use another") from error
        raise
    own = [place for place, sequence in enumerate(encoding.sequence_ids) if sequence is not None]
    if not own:
        raise ConfigError(
            "the tokenizer has no token for the letter 'a', not even an unknown one; use another"
        )
    return SpecialTokens(encoding.ids[: own[0]], encoding.ids[own[-1] + 1 :])
