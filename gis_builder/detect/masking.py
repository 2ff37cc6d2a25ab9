"""Blank what a comment's writer doesn't say: quotes, code, hidden or struck text, checklists.

Every masked character becomes a space and every line break stays, so positions keep their meaning.
"""

from __future__ import annotations

import re

_FENCE = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_INDENT = ("    ", "\t")
_LIST_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d+[.)])[ \t]")
_INLINE_CODE = re.compile(r"(`+)(?!`)(?:[^`\n]|(?!\1)`)+?\1(?!`)")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PREFORMATTED = re.compile(r"<(pre|code|blockquote)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_QUOTE = re.compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)
_STRUCK = re.compile(r"~~(?=\S)[^\n]+?(?<=\S)~~")
_CHECKBOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][^\n]*$", re.MULTILINE)
_MAIL_HEADER = re.compile(r"^On [^\n]{8,120}(?:\n[^\n]{1,80})?wrote:[ \t]*$", re.MULTILINE)
_UNPRINTED = re.compile(r"[^\n]")


def mask(text: str) -> str:
    """Return `text` with quotes, code, hidden comments and checklists blanked, at the same length.

    Carriage returns become spaces, so that lines end in one way only.
    """
    text = text.replace("\r", " ")
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_blank, text)
    if "    " in text or "\t" in text:
        # Before anything else leaves blanks at the beginning of a line.
        text = _mask_indented(text)
    if "<" in text:
        text = _PREFORMATTED.sub(_blank, _HIDDEN.sub(_blank, text))
    if "`" in text:
        text = _INLINE_CODE.sub(_blank, text)
    if "~~" in text:
        text = _STRUCK.sub(_blank, text)
    if ">" in text:
        text = _QUOTE.sub(_blank, text)
    if "[" in text:
        text = _CHECKBOX.sub(_blank, text)
    if "wrote:" in text:
        text = _MAIL_HEADER.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    return _UNPRINTED.sub(" ", match.group())


def _mask_indented(text: str) -> str:
    """Blank code that is marked by indentation; indented text below a list item is the item's, not code."""
    lines = text.split("\n")
    after_blank, in_list, in_code = True, False, False
    for place, line in enumerate(lines):
        if not line.strip():
            after_blank = True
            continue
        is_indented = line.startswith(_INDENT)
        in_code = is_indented and not in_list and (after_blank or in_code)
        if in_code:
            lines[place] = " " * len(line)
        elif not is_indented:
            in_list = _LIST_ITEM.match(line) is not None or (in_list and not after_blank)
        after_blank = False
    return "\n".join(lines)
