"""What is written under an issue. Titles and sentences are others' words, of whom some mean harm.

Each stands in a code span, where Markdown and GitHub see no markup, HTML, mention, reference or link. What
could end the span, break the line or turn the direction of writing goes. The number of an issue is ours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from gis_builder._suggest.found import Suggestion
from pairkit.printable import one_line

_LONGEST = 200  # characters of a title or sentence
_FENCE = re.compile("`+")
_HEAD = "This may have been reported before:"
_TAIL = "A program looked for older issues that say the same, and may be wrong. Nobody has to answer."


def comment_text(suggestions: Sequence[Suggestion]) -> str:
    """The comment in Markdown, without its mark.

    Args:
        suggestions: What is suggested, the most probable first.
    """
    lines = [line for suggestion in suggestions for line in _lines(suggestion)]
    return "\n".join([_HEAD, "", *lines, "", f"<sub>{_TAIL}</sub>"])


def harmless(text: str) -> str:
    """A text as a code span of one line, which links to nothing and calls nobody; empty for blanks."""
    visible = "".join(letter for letter in text if unicodedata.category(letter)[0] != "C" or letter.isspace())
    line = one_line(_FENCE.sub("'", visible), _LONGEST)
    return f"`{line}`" if line else ""


def _lines(suggestion: Suggestion) -> list[str]:
    likely = "" if suggestion.probability is None else f", {suggestion.probability:.0%} likely"
    first = f"- #{suggestion.number} ({suggestion.state}{likely}) {harmless(suggestion.title)}"
    quoted = harmless(suggestion.sentence)
    return [first.rstrip(), *([f"  {quoted}"] if quoted else [])]
