"""An answer on its way out: what it says, and what becomes of it on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Fate(Enum):
    """What happens to an answer."""

    SENT = "sent"
    TRUNCATED = "truncated"
    DROPPED_BEFORE = "dropped before the answer"
    DROPPED_WITHIN = "dropped in the answer"
    STALLED = "stalled"


@dataclass
class Reply:
    """One HTTP answer; `payload` becomes JSON unless it is text."""

    status: int
    payload: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    fate: Fate = Fate.SENT

    def body(self) -> bytes:
        """The bytes to send; nothing where there is no payload."""
        if self.payload is None:
            return b""
        if isinstance(self.payload, str):
            return self.payload.encode()
        # A lone surrogate in a dump can't be UTF-8; GitHub would not have it either.
        return json.dumps(self.payload, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
