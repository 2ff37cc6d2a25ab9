"""Which strings of a decoded JSON value are sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from llm_labeler.parse.source import Source
from llm_labeler.records import Item

_DEPTH = 8
_ECHO = re.compile(r"(?:original|input|source|given|prompt|question|原|输入|问)", re.IGNORECASE)
_SIDE = re.compile(
    r"(?:explanation|explain|note|reason|id$|index|number|label|type|lang|polarity|score|confidence|difference"
    r"|comment|title|status|error|message|detail|code|model|role|task|thought|analysis|解释|说明|编号|序号|备注|类型)",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"(?:(?:\w+[_ -])?(?:sentence|text|output|synonym|antonym|paraphrase|rewrite|rewritten|result|answer"
    r"|response|content|generated|value|version|variation|alternative|opposite|positive|negative)|句|同义|反义|文本|输出|结果|内容)",
    re.IGNORECASE,
)


def items_of(value: Any, source: Source, depth: int = 0) -> Iterator[Item]:
    """Every string in `value`: sentences without a reason, others with theirs, and what should be one."""
    if isinstance(value, str):
        yield Item(value)
    elif depth > _DEPTH:
        yield Item(str(type(value).__name__), "unparsable")
    elif isinstance(value, list):
        for element in value:
            yield from items_of(element, source, depth + 1)
    elif isinstance(value, dict):
        yield from _items_of_fields(value, source, depth)
    else:
        yield Item(str(value), "not_text")


def _items_of_fields(fields: dict[str, Any], source: Source, depth: int) -> Iterator[Item]:
    named = {name for name in fields if _TEXT.match(name) and not _ECHO.match(name)}
    for name, value in fields.items():
        if isinstance(value, str):
            reason = _reason(name, value, source, named)
            yield Item(value, reason)
        elif isinstance(value, list | dict):
            # Lists of a field that holds explanations are explanations.
            kept = items_of(value, source, depth + 1)
            yield from (Item(item.text, "side_field") for item in kept) if _SIDE.match(name) else kept


def _reason(name: str, value: str, source: Source, named: set[str]) -> str | None:
    if _ECHO.match(name) or (len(named) > 1 and source.is_said_by(value)):
        return "echo"
    if name in named:
        return None
    # {"the source": "its opposite"} has the source for a name.
    return "side_field" if (named or _SIDE.match(name)) and not source.is_said_by(name) else None
