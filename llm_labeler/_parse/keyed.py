"""YAML, TOML and INI: lines `name: value`, read so where a name or a block says that they are data."""

from __future__ import annotations

import re

from llm_labeler._parse.names import role_of
from llm_labeler._parse.quotes import unquote

_FIELD = re.compile(
    r"(?P<indent>[ \t]*)(?P<dash>- +)?\"?(?P<name>[a-z_][\w-]{0,30})\"? ?(?:=[ \t]*|:[ \t]+|:$)(?P<value>.*)$"
)
_ELEMENT = re.compile(r"(?P<indent>[ \t]*)- +(?P<value>.+)")
_BLOCK = re.compile(r"[>|][+-]?\d?")
_SECTION = re.compile(r"[ \t]*(?:\[{1,2}[\w. -]{1,60}\]{1,2}|---|\.\.\.|#.*)?[ \t]*$")
_SCALAR = re.compile(r"[\w.%/-]{1,20}[ \t]*$")

Record = dict[str, str | list[str]]


def read_keyed(text: str) -> list[Record] | None:
    """Records of named values, in order; None where the lines aren't such data throughout."""
    lines = text.split("\n")
    fields = [_FIELD.match(line) for line in lines]
    if not any(field is not None and _is_data(field) for field in fields):
        return None
    records: list[Record] = [{}]
    name, depth, in_block = "", 0, False
    for line, field in zip(lines, fields, strict=True):
        indent = len(line) - len(line.lstrip())
        if in_block and name and line.strip() and indent > depth:
            _add(records[-1], name, line.strip())
        elif field is not None:
            name, depth = field["name"], indent
            value = (field["value"] or "").strip()
            if field["dash"] or name in records[-1]:
                records.append({})
            in_block = _BLOCK.fullmatch(value) is not None
            records[-1][name] = "" if in_block else unquote(value) if value else []
        elif (element := _ELEMENT.match(line)) is not None:
            depth, value = indent, element["value"].strip()
            name = name or "sentence"
            in_block = _BLOCK.fullmatch(value) is not None
            held = records[-1].setdefault(name, [])
            if not isinstance(held, list):
                return None
            held.append("" if in_block else unquote(value))
        elif _SECTION.match(line):
            name, in_block = ("" if line.strip() else name), in_block and not line.strip()
        elif name and indent > depth:
            _add(records[-1], name, line.strip())  # a value that goes on
        else:
            return None
    return [record for record in records if record]


def _is_data(field: re.Match[str]) -> bool:
    """Whether no sentence would be labelled so: a block, or a number beside what is meant."""
    value = (field["value"] or "").strip()
    is_side = role_of(field["name"]) == "side" and _SCALAR.match(value) is not None
    return is_side or _BLOCK.fullmatch(value) is not None


def _add(record: Record, name: str, said: str) -> None:
    held = record[name]
    if isinstance(held, str):
        record[name] = f"{held} {said}".strip()
    elif held:
        held[-1] = f"{held[-1]} {said}".strip()
    else:
        held.append(said)
