"""Prompts: words that a model was trained to read with a text, stored in the model by name.

A prompt is put before the text, as in sentence-transformers: `query: `. If it contains `{text}`, the text
replaces that: `Summarize sentence {text} in one word:`. Braces within texts have no meaning.

As in sentence-transformers, every model has the prompts `query` and `document`. They are empty unless the
model defines them, or its default prompt has words after the text; then they are that prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

PLACE = "{text}"
DEFAULT = "default"
"""Name of an unnamed prompt for all texts."""
QUERY = "query"
DOCUMENT = "document"
DOCUMENTS = (DOCUMENT, "passage", "corpus")
"""Names of the prompt for searched texts; the first non-empty one is used."""


class Prompt(NamedTuple):
    """The words before and after a text."""

    before: str
    after: str = ""


def read_prompt(words: str) -> Prompt:
    """Split a prompt at `{text}`."""
    count = words.count(PLACE)
    if count > 1:
        raise ConfigError(
            f"prompt {one_line(words, 80)!r}: has {PLACE} {count} times; expected once at most"
        )
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"prompt {words!r}: has a lone surrogate; expected valid Unicode"
        ) from error
    before, _, after = words.partition(PLACE)
    return Prompt(before, after)


def written_out(words: str, text: str) -> str:
    """The text with its prompt, for models that we don't tokenise for."""
    before, after = read_prompt(words)
    return f"{before}{text}{after}"


class NamedPrompts:
    """A model's prompts by name, and the name of its default."""

    def __init__(self, prompts: Mapping[str, str], default: str | None = None) -> None:
        """Check the prompts."""
        for name, words in prompts.items():
            if not name.strip():
                raise ConfigError(f"prompt {one_line(words, 80)!r}: has an empty name")
            read_prompt(words)
        self.prompts = prompts
        self.default = default
        implied = prompts.get(default or "", "")
        if not read_prompt(implied).after:
            implied = ""
        self.known = {QUERY: implied, DOCUMENT: implied, **prompts}
        """All prompts that can be used by name."""
        if default is not None:
            self.named(default)

    def named(self, name: str) -> str:
        """The words of a prompt."""
        if name not in self.known:
            known = ", ".join(
                repr(one_line(known_name, 80)) for known_name in self.known
            )
            raise ConfigError(
                f"no prompt {one_line(name, 80)!r}; this model has {known}"
            )
        return self.known[name]

    def chosen(self, *, prompt: str | None = None, name: str | None = None) -> str:
        """The words to use: `prompt` itself, the prompt with this name, or else the default."""
        if prompt is not None and name is not None:
            raise ConfigError("--prompt and --prompt-name: give only one of them")
        if prompt is not None:
            read_prompt(prompt)
            return prompt
        if name is None:
            name = self.default
        return "" if name is None else self.named(name)

    @property
    def query(self) -> str:
        """The words for queries."""
        return self.known[QUERY]

    @property
    def document(self) -> str:
        """The words for searched texts."""
        prompts = (self.known.get(name) for name in DOCUMENTS)
        return next(filter(None, prompts), "")

    @property
    def around_all(self) -> str | None:
        """The only prompt, if it is the default and has words after the text; a tokenizer can then add it."""
        if self.default is None or self.prompts.keys() != {self.default}:
            return None
        words = self.prompts[self.default]
        return words if read_prompt(words).after else None

    @property
    def after_text(self) -> str | None:
        """The name of a prompt with words after the text, if there is one."""
        return next(
            (name for name, words in self.prompts.items() if read_prompt(words).after),
            None,
        )
