"""Opaque cursors: the position of an item in its list, dressed as GitHub dresses them."""

from __future__ import annotations

import base64
import binascii

_PREFIX = "cursor:v2:"


def encode_cursor(position: int) -> str:
    """The cursor of the item at `position`, counted from 0."""
    return base64.b64encode(f"{_PREFIX}{position}".encode()).decode()


def decode_cursor(cursor: str) -> int | None:
    """The position that a cursor stands for, or None where it is none of ours."""
    try:
        text = base64.b64decode(cursor, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    number = text.removeprefix(_PREFIX)
    return int(number) if text.startswith(_PREFIX) and number.isdecimal() else None
