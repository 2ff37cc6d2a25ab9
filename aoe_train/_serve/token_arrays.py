"""Texts that clients send as numbers of tokens, as OpenAI's API takes them too.

The numbers mean nothing without the encoding that made them, and a request does not say which that was. So
they are read only where a person has named it; the model's own tokenizer then reads the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from aoe_train._serve.refusals import RefusalError
from pairkit.errors import ConfigError
from pairkit.extras import needed_for
from pairkit.printable import one_line


class TokenArrays:
    """Gives back the texts."""

    def __init__(self, name: str) -> None:
        """Read an encoding.

        Args:
            name: As tiktoken calls it, such as cl100k_base.

        Raises:
            ConfigError: tiktoken is not installed, knows no such encoding, or can't have its file.
        """
        with needed_for(f"--token-encoding {one_line(name, 40)}", "tokens"):
            import tiktoken
        try:
            self._encoding = tiktoken.get_encoding(name)
        except ValueError as error:
            known = ", ".join(tiktoken.list_encoding_names())
            raise ConfigError(
                f"--token-encoding {one_line(name, 40)}: no encoding of tiktoken's, which are {known}"
            ) from error
        except OSError as error:  # requests' errors are some
            raise ConfigError(
                f"--token-encoding {name}: its file could not be fetched ({one_line(str(error), 100)}); fetch"
                " it where there is a network, and name its folder in TIKTOKEN_CACHE_DIR"
            ) from error

    def text(self, numbers: Sequence[int]) -> str:
        """The text of an array; a character of which only a part is there becomes U+FFFD.

        Raises:
            RefusalError: A number that is none of the encoding's.
        """
        try:
            return self._encoding.decode(list(numbers))
        except (KeyError, OverflowError) as error:
            raise RefusalError(
                400,
                f"input holds a number that is no token of {self._encoding.name}, which this server reads",
                param="input",
                code="token_ids",
            ) from error
