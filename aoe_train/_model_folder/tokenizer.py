"""tokenizer.json: rules that would make a short text endless, or try every part of a long word.

Regular expressions of normalizers and pre-tokenizers are not looked at. The engine that tokenizers uses
gives up a search after so many tries of its own, and `tokens` then refuses the text. A slow one still costs
up to that limit for each place in a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoe_train._model_folder.files import read_object
from pairkit.errors import DataError

_MOST_GROWTH = 64  # times, of a text by all its replacements together
_LONGEST_WORD = 1_000  # WordPiece looks at every part of a word; it is published with 100


def check_tokenizer(folder: Path) -> None:
    """Refuse replacements whose result has no sensible bound, and a search over words without end.

    Raises:
        DataError: The file is damaged, or such a rule is in it.
    """
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
        read_object(folder / name)
    path = folder / "tokenizer.json"
    found = read_object(path)
    growth = 1.0
    for step in _steps([found.get("normalizer"), found.get("pre_tokenizer")]):
        growth *= max(1.0, _growth(step))
        if growth > _MOST_GROWTH:
            raise DataError(
                f"its replacements make a text more than {_MOST_GROWTH} times longer; take a tokenizer that"
                " does not",
                path=path,
            )
    model = found.get("model")
    longest = model.get("max_input_chars_per_word", 0) if isinstance(model, dict) else 0
    if not isinstance(longest, int) or longest > _LONGEST_WORD:
        raise DataError(
            f"max_input_chars_per_word = {str(longest)[:20]!r}: expected at most {_LONGEST_WORD}; longer ones"
            " are one unknown token",
            path=path,
        )


def _growth(step: dict[str, Any]) -> float:
    """How many times longer a text can become."""
    pattern, content = step.get("pattern"), step.get("content", step.get("prepend"))
    if not isinstance(content, str):
        return 1.0
    replaced = pattern.get("String") if isinstance(pattern, dict) else None
    return len(content) / max(1, len(replaced) if isinstance(replaced, str) else 1)


def _steps(tree: Any) -> Iterator[dict[str, Any]]:
    """All steps, of sequences in sequences too."""
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
