"""What shows that a text is broken: words in no order, pieces of words, an emphasis that nothing closes."""

from __future__ import annotations

import re

from llm_labeler._parse.source import Source

# Words that no sentence has twice running, signs that stand alone, characters and words that came in pieces.
_TWICE = re.compile(
    r"\b(the|a|an|of|and|to|in|at|is|are|was|were|for|with|by|from|on|or|as|it"
    r"|el|los|las|un|una|de|y|en|le|les|des|et|du|und|der|das|den|ein|eine|mit|von)(?: \1)+\b",
    re.IGNORECASE,
)
_ALONE = re.compile(r"(?<=\s)[,;:](?=\s+[,;:](?:\s|$))")
_REPLACED = re.compile("\ufffd{2,}")
_PIECE = re.compile(r"(?:^|\s)##(?=\w)")
_ENOUGH = 2  # once a writer may slip

# The mark that opens bold type, where no other stands behind it.
_OPEN_BOLD = re.compile(r"(?:^|(?<=[\s(:.\"“]))\*\*(?=[^\s*])(?:[^*\n]|\*(?!\*))*$", re.MULTILINE)
_ENDED = re.compile(r"[.!?。…][\"”'’)]*\s*$")


def is_salad(said: str, source: Source) -> bool:
    """Whether a tidy text is words without order, as a broken model says them: `the the of ##ing of , ,`."""
    kinds = (_TWICE, _ALONE, _REPLACED, _PIECE)
    found = ((kind, len(kind.findall(said))) for kind in kinds)
    return sum(count for kind, count in found if count and source.lacks(kind)) >= _ENOUGH


def is_left_bold(text: str, source: Source) -> bool:
    """Whether `text` ends inside bold type that only its last line leaves open: it was cut there."""
    if "**" in source.text or "**" not in text:
        return False
    before, _, last = text.rstrip().rpartition("\n")
    match = _OPEN_BOLD.search(last)
    return match is not None and not _ENDED.search(last) and _OPEN_BOLD.search(before) is None
