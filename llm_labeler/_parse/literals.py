"""Strings in code of whatever language: any quotes, calls, lists, comments, keys without quotes."""

from __future__ import annotations

import re

from llm_labeler._parse.source import Source, size_of

_STRING = (
    r"\"(?P<double>(?:[^\"\\\n]|\\.){0,500})\"|(?<!\w)'(?P<single>(?:[^'\\\n]|\\.|''){0,500})'"
    r"|`(?P<back>[^`\n]{0,500})`"
)
_TOKEN = re.compile(
    rf"{_STRING}|(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/)){{0,500}}\*/|#[^\n]*|--[^\n]*|;;[^\n]*)"
    r"|(?P<other>\n|[^\"'`/#;\-\n]+|.)",
    re.DOTALL,
)
_NAME = re.compile(r"(?:^|[\s,{\[(])[\"':$]?(?P<name>[A-Za-z_]\w{0,40})[\"']? ?(?:=>|[:=])\s*$")
_OPENED = re.compile(r"[(\[{=,>:|]\s*$")
_CLOSED = re.compile(r"\s*(?:[)\],;}]|$)")
_KEY = re.compile(r"\s*(?:=>|[:=](?!=))")
_SENTENCE = re.compile(r".*[.!?。][\"')\s]*$", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}
_REACH = 80  # characters looked at on either side of a string

Literal = str | dict[str, str]


def read_code(text: str, source: Source) -> list[Literal] | None:
    """Strings of code, with the names that are given to them, in order; None where `text` is no code.

    It is if at least two strings are as long as sentences, all of these stand where strings stand in code,
    and no line beside them is a sentence.
    """
    tokens = list(_TOKEN.finditer(text)) if any(sign in text for sign in "\"'`") else []
    found: list[Literal] = []
    whole = 0
    beside: list[str] = []
    for token in tokens:
        string = next((token[kind] for kind in ("double", "single", "back") if token[kind] is not None), None)
        if string is None:
            beside.append(token["other"] or "")
            continue
        before, after = (
            text[max(token.start() - _REACH, 0) : token.start()],
            text[token.end() : token.end() + _REACH],
        )
        if _KEY.match(after):
            continue
        is_whole = source.is_as_long_as(string) and " " in string.strip()
        if is_whole and not _is_placed(before, after):
            return None
        whole += is_whole
        name = _NAME.search(before)
        if name is not None:
            found.append({name["name"]: _unescaped(string)})
        elif is_whole:
            found.append(_unescaped(string))
    return found if whole > 1 and not _says_more("".join(beside)) else None


def _is_placed(before: str, after: str) -> bool:
    """Whether a string is an argument, an element or a value, by the signs at its sides."""
    line, rest = before.rpartition("\n")[2], after.partition("\n")[0]
    opened = _OPENED.search(before) is not None
    closed = _CLOSED.match(rest) is not None or rest.lstrip().startswith(("//", "#", "/*", "--"))
    return closed and (opened or (not line.strip() and rest.lstrip()[:1] in (",", ")", "]", ";", "")))


def _says_more(beside: str) -> bool:
    """Whether a line beside the strings is a sentence, or names what is no name of code."""
    return any(
        (size_of(line) > 2 and _SENTENCE.match(line[:400]) is not None)
        or line.lstrip()[:2].rstrip(".)").isdigit()
        for line in beside.split("\n")
    )


def _unescaped(string: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), string).replace("''", "'")
