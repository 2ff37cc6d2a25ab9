"""Prompts: words that go with a text and say what it is for, which a model knows by name.

A prompt stands before the text, as in sentence-transformers: `query: `. Where it holds `{text}`, the text
stands there, and words may follow it: `Summarize sentence {text} in one word:`. What braces a text holds does
not matter.

Every model knows `query` and `document`, as in sentence-transformers. Where it has no such prompts of its
own, they are empty, unless its default prompt has words after the text: that one goes around every text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line

PLACE = "{text}"
DEFAULT = "default"
"""The name of a prompt for all texts that nobody gave a name."""
QUERY = "query"
DOCUMENTS = ("document", "passage", "corpus")
"""Names of the prompt for what is searched; the first that has words is meant."""


class Prompt(NamedTuple):
    """The words before a text and those after it."""

    before: str
    after: str = ""


def read_prompt(words: str) -> Prompt:
    """A prompt from how it is written."""
    if words.count(PLACE) > 1:
        raise ConfigError(
            f"prompt {one_line(words, 80)!r}: expected {PLACE} in it once at most, where the text goes; found"
            f" {words.count(PLACE)}"
        )
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"prompt {words!r} holds half a surrogate pair; expected valid Unicode") from error
    before, _, after = words.partition(PLACE)
    return Prompt(before, after)


def written_out(words: str, text: str) -> str:
    """The text with its prompt, as one who has no tokenizer of the model's would send it."""
    before, after = read_prompt(words)
    return f"{before}{text}{after}"


class NamedPrompts:
    """A model's prompts, and which of them is meant."""

    def __init__(self, own: Mapping[str, str], default: str | None = None) -> None:
        """Check them."""
        for name, words in own.items():
            if not name.strip():
                raise ConfigError(f"prompt {one_line(words, 80)!r}: its name is empty")
            read_prompt(words)
        implied = own.get(default or "", "")
        implied = implied if read_prompt(implied).after else ""
        self.own, self.default = own, default
        self.known = {QUERY: implied, DOCUMENTS[0]: implied, **own}
        """What can be asked for by name."""
        if default is not None:
            self.named(default)

    def named(self, name: str) -> str:
        """The words of a prompt."""
        if name not in self.known:
            raise ConfigError(f"no prompt {one_line(name, 80)!r}; this model has {_listed(self.known)}")
        return self.known[name]

    def chosen(self, *, prompt: str | None = None, name: str | None = None) -> str:
        """The words for texts: `prompt` itself, else the prompt of this name, else the default one."""
        if prompt is not None:
            read_prompt(prompt)
            return prompt
        asked = self.default if name is None else name
        return "" if asked is None else self.named(asked)

    @property
    def query(self) -> str:
        """The words for what is searched with."""
        return self.known[QUERY]

    @property
    def document(self) -> str:
        """The words for what is searched."""
        return next((words for name in DOCUMENTS if (words := self.known.get(name))), "")

    @property
    def around_all(self) -> str | None:
        """The only prompt, if it is the default one and has words after the text; None else.

        A tokenizer can hold it, as no other prompt is asked for.
        """
        if self.default is None or self.own.keys() != {self.default}:
            return None
        words = self.own[self.default]
        return words if read_prompt(words).after else None

    @property
    def after_text(self) -> str | None:
        """The name of a prompt with words after the text; None where there is none."""
        return next((name for name, words in self.own.items() if read_prompt(words).after), None)


def _listed(prompts: Mapping[str, str]) -> str:
    return ", ".join(f"{one_line(name, 80)!r}" for name in prompts)
