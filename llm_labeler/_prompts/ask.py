"""The questions that make candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from llm_labeler._prompts.template import Template
from llm_labeler._records import Ask, AskKey, Polarity, Text

# For servers that can hold an answer to a schema.
SENTENCES: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}


def generation_asks(
    texts: Iterable[Text],
    template: Template,
    size: int,
    polarities: tuple[Polarity, ...],
    llm: str,
    parameters: str,
) -> Iterator[Ask]:
    """One LLM's questions, text by text, each polarity in turn.

    Args:
        texts: In the order of asking.
        template: What to ask.
        size: Sentences wanted.
        polarities: Which ones.
        llm: Its name in the configuration.
        parameters: See `AskKey`.
    """
    hashes = {polarity: template.prompt_hash(size, polarity) for polarity in polarities}
    for text in texts:
        for polarity in polarities:
            yield Ask(
                AskKey(text.text_id, llm, polarity, hashes[polarity], parameters),
                template.messages(text.text, size, polarity),
                SENTENCES,
                text.text,
                size,
            )
