"""Secrets that a server repeats are taken out of its answer at the door, before anything is kept or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "[key]"
_SHORTEST = 8  # characters: "EMPTY", "ollama" and the like are no secrets, and may stand in any text


class Masking:
    """Hides secrets, in whichever way a server has escaped them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Secrets shorter than eight characters are left alone."""
        hidden = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._plain = [secret.encode() for secret in hidden]
        self._escaped = [re.compile(b"".join(_spellings(byte) for byte in secret)) for secret in self._plain]

    def body(self, body: bytes) -> bytes:
        """A body without them: as they are, or with characters as JSON or a URL may spell them."""
        mask = MASK.encode()
        for secret in self._plain:
            body = body.replace(secret, mask)
        if b"\\" in body or b"%" in body:
            for escaped in self._escaped:
                body = escaped.sub(mask, body)
        return body

    def text(self, text: str) -> str:
        """A message or header without them."""
        return self.body(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _spellings(byte: int) -> bytes:
    r"""A pattern for `/`, `\/`, `\u002f` and `%2F` alike."""
    one = re.escape(bytes((byte,)))
    digits = b"%02x" % byte
    return b"(?:" + one + b"|\\\\" + one + b"|(?i:\\\\u00" + digits + b"|%" + digits + b"))"
