"""Markup of other trackers than GitHub: converted to Markdown on import, masked before detection.

`markup.toml` declares it. Blocks are paired in one pass, so that a text with many of them takes linear time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

_DECLARED = tomllib.loads(
    Path(__file__).with_name("markup.toml").read_text(encoding="utf-8")
)
_FLAGS = re.MULTILINE | re.IGNORECASE
_TICKS = re.compile(r"`+")
# A text that begins and ends with a tag is HTML, such as Azure DevOps's; entities are replaced later.
_HTML = re.compile(
    r"(?is)\s*<(?:div|p|span|br|ul|ol|h[1-6]|blockquote|pre)\b.*>(?:\s|&nbsp;)*\Z"
)
_MAX_DEPTH = 5  # of quotes in quotes
ANY = "any"


class Block(NamedTuple):
    """A quote, code or other block with its tags, and what it becomes."""

    span: tuple[int, int]
    inside: str
    becomes: str


class BlockRule(NamedTuple):
    """Finds the end of a block."""

    becomes: str
    # The tags that close a block and, if such blocks contain each other, those that open another.
    tags: re.Pattern[str]

    @classmethod
    def of(cls, declared: dict[str, Any]) -> BlockRule:
        """Compile a rule of `markup.toml`."""
        tags = f"(?P<close>{declared['close']})"
        if declared.get("nests"):
            tags += f"|{declared['open']}"
        return cls(declared["becomes"], re.compile(tags, _FLAGS))

    def end_of(self, text: str, position: int) -> re.Match[str] | None:
        """The closing tag; of unbalanced blocks the last one."""
        depth = 1
        last = None
        for tag in self.tags.finditer(text, position):
            if tag["close"] is None:
                depth += 1
                continue
            last = tag
            depth -= 1
            if not depth:
                break
        return last


class InlineRule(NamedTuple):
    """A link or format, and its replacement in Markdown."""

    sign: str
    pattern: re.Pattern[str]
    replacement: str


class Markup:
    """The rules of one kind of markup."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        blocks = [rule for rule in _DECLARED["blocks"] if kind in rule["kinds"]]
        self.signs = [rule["sign"] for rule in blocks]
        self.rules = {f"_{n}": BlockRule.of(rule) for n, rule in enumerate(blocks)}
        openings = (f"(?P<_{n}>{rule['open']})" for n, rule in enumerate(blocks))
        self.opening = re.compile("|".join(openings), _FLAGS)
        self.inline = [
            InlineRule(rule["sign"], re.compile(rule["find"], _FLAGS), rule["replace"])
            for rule in _DECLARED["inline"]
            if kind in rule["kinds"]
        ]

    def blocks(self, text: str) -> Iterator[Block]:
        """The outermost blocks; those without an end are left out."""
        lower = text.lower()
        if not any(sign in lower for sign in self.signs):
            return
        position = 0
        unclosed = set()
        while opening := self.opening.search(text, position):
            name = opening.lastgroup or ""
            rule = self.rules[name]
            closing = None if name in unclosed else rule.end_of(text, opening.end())
            if closing is None:
                unclosed.add(name)
                position = opening.end()
                continue
            position = closing.end()
            inside = text[opening.end() : closing.start()]
            yield Block((opening.start(), position), inside, rule.becomes)

    def markdown(self, text: str, depth: int = _MAX_DEPTH) -> str:
        """Convert a text to Markdown."""
        pieces = []
        position = 0
        for block in self.blocks(text) if depth else ():
            start, end = block.span
            before = self._line(text[position:start])
            pieces.append(before)
            position = end
            if block.becomes == "same":
                pieces.append(text[start:end])
                continue
            if before and not before.endswith("\n"):
                pieces.append("\n")
            pieces.append(self._converted(block, depth))
            if text.startswith("\n", end):
                position += 1
        pieces.append(self._line(text[position:]))
        return "".join(pieces)

    def _converted(self, block: Block, depth: int) -> str:
        inside = block.inside
        if block.becomes == "code":
            if self.kind == "html":
                inside = unescape(self._line(inside))
            return _fenced(inside)
        kind = self if block.becomes in ("quote", "text") else markup(block.becomes)
        inside = kind.markdown(inside, depth - 1).strip("\n")
        if block.becomes != "quote":
            return f"{inside}\n"
        quoted = [f"> {line}\n" for line in inside.split("\n")]
        return "".join(quoted) + "\n"

    def inline_rules(self, text: str) -> list[InlineRule]:
        """The rules of links and formats that may occur in a text."""
        lower = text.lower()
        return [rule for rule in self.inline if rule.sign in lower]

    def _line(self, text: str) -> str:
        """Convert a text without blocks."""
        for rule in self.inline_rules(text):
            text = rule.pattern.sub(rule.replacement, text)
        return text


@cache
def markup(kind: str) -> Markup:
    """The rules of a kind, compiled once."""
    return Markup(kind)


def to_markdown(text: str, kind: str) -> str:
    """A text of a tracker as Markdown; HTML as a whole is recognised in any kind."""
    if _HTML.match(text):
        return markup("html").markdown(text).strip()
    lines = text.replace("\r\n", "\n")
    converted = markup(kind).markdown(lines)
    return text if converted == lines else converted


@lru_cache(100)
def markup_kind(names: tuple[str, ...]) -> str:
    """The kind of markup in a tracker's texts, by the columns or keys of its tickets."""
    lower = {name.strip().lower() for name in names}
    for kind, signs in _DECLARED["kinds"].items():
        if any(lower.issuperset(sign) for sign in signs):
            return str(kind)
    return ANY


def _fenced(code: str) -> str:
    """A fenced block; its fence is longer than any in the code."""
    longest = max(map(len, _TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code.strip(chr(10))}\n{fence}\n"
