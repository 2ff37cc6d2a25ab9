"""Which strings of a decoded JSON value are sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llm_labeler._parse.names import Role, polarity_of, role_of
from llm_labeler._parse.source import Source
from llm_labeler._records import Item, Polarity

_DEPTH = 8


def items_of(value: Any, source: Source, polarity: Polarity | None, depth: int = 0) -> Iterator[Item]:
    """Every string in `value`: sentences without a reason, others with theirs, and what should be one."""
    if isinstance(value, str):
        yield Item(value)
    elif depth > _DEPTH:
        yield Item(str(type(value).__name__), "unparsable")
    elif isinstance(value, list):
        spoken = [_polarity(element) for element in value]
        has_own = polarity is not None and polarity in spoken
        for element, of_element in zip(value, spoken, strict=True):
            is_other = has_own and of_element not in (None, polarity)
            for item in items_of(element, source, polarity, depth + 1):
                yield Item(item.text, item.reason or "other_polarity") if is_other else item
    elif isinstance(value, dict):
        yield from _items_of_fields(value, source, polarity, depth)
    else:
        yield Item(str(value), "not_text")


def _polarity(record: object) -> Polarity | None:
    """The polarity that a short value of a record speaks of: `{"type": "antonym", "text": …}`."""
    values = record.values() if isinstance(record, dict) else ()
    short = (value for value in values if isinstance(value, str) and value.count(" ") < 2)
    return next((found for value in short if (found := polarity_of(value))), None)


def _items_of_fields(
    fields: dict[str, Any], source: Source, polarity: Polarity | None, depth: int
) -> Iterator[Item]:
    roles = {name: role_of(name) for name in fields}
    said = any(isinstance(value, str) and roles[name] == "sentence" for name, value in fields.items())
    holds = any(isinstance(value, list | dict) and value for value in fields.values())
    has_own = any(polarity_of(name) == polarity for name in fields)
    for name, value in fields.items():
        is_other = has_own and polarity_of(name) not in (None, polarity)
        if polarity is not None and is_other:
            reason: str | None = "other_polarity"
        elif isinstance(value, str):
            reason = _reason(name, value, source, roles, said or holds)
        else:
            # Lists of a field that holds explanations are explanations.
            reason = "side_field" if roles[name] == "side" and isinstance(value, list | dict) else None
        for item in items_of(value, source, polarity, depth + 1):
            yield item if reason is None else Item(item.text, reason)


def _reason(
    name: str, value: str, source: Source, roles: dict[str, Role | None], has_others: bool
) -> str | None:
    if roles[name] == "echo" or (len(roles) > 1 and source.is_said_by(value)):
        return "echo"
    if roles[name] == "sentence":
        return None
    # {"the source": "its opposite"} has the source for a name.
    return "side_field" if (has_others or roles[name] == "side") and not source.is_said_by(name) else None
