"""To whom a sentence is said, and of whose problem: "@ann your bug is a dup", "what @bob sees is"."""

from __future__ import annotations

import re
from typing import NamedTuple

_LOGIN = r"@(?P<who>[a-z\d](?:-?[a-z\d]){0,38})"
_YOURS = re.compile(
    r"\byours?\b(?: (?!this\b|it\b)[\w-]+){0,2}"
    r" (?:is|was|are|seems|looks|sounds|appears|might|may|could|must)\b"
    r"|\bwhat you(?:'re|'ve)?(?: \w+){1,3} (?:is|looks|seems|sounds)\b"
)
_THEIRS = re.compile(
    rf"{_LOGIN}(?:'s (?:\w+ )?(?:issue|problem|bug|case|example|error|crash)"
    r"| (?:sees?|has|hits?|hit|describe[sd]|reports?|reported|is seeing|ran into|mentioned|encountered))\b"
)
_ADDRESSED = re.compile(rf"\s{{0,4}}(?:\w{{1,12}},? )?{_LOGIN}\b")


class Address(NamedTuple):
    """The login that something is said to, if one is named, and whether it is about that person's problem."""

    who: str | None = None
    is_theirs: bool = False


def address_of(text: str, start: int, marker: int) -> Address:
    """Read the address of a claim.

    Args:
        text: The whole text in lower case.
        start: Where the claim's sentence begins.
        marker: Where its marker begins.
    """
    theirs = _THEIRS.search(text, start, marker)
    if theirs is not None:
        return Address(theirs["who"], is_theirs=True)
    addressed = _ADDRESSED.match(text, start) or _ADDRESSED.match(text)
    is_theirs = _YOURS.search(text, start, marker) is not None
    return Address(addressed["who"] if addressed else None, is_theirs)
