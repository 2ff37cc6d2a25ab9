"""Choices that a seed decides and that nothing else does: not the order of input, not the process.

A running random generator ties every choice to all the choices before it, so one more record changes
everything after it. Here each choice is a hash of the seed and of what it is about.
"""

from __future__ import annotations

from hashlib import blake2b

_SPAN = 1 << 64


def keyed_hash(seed: int, *about: object) -> int:
    """A 64-bit number that depends on the seed and on the string forms of `about`."""
    text = "\x1f".join(str(part) for part in about)
    key = (seed % _SPAN).to_bytes(8, "little")
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=key).digest(), "little")


def keyed_unit(seed: int, *about: object) -> float:
    """Like `keyed_hash`, as a number in [0, 1)."""
    return (keyed_hash(seed, *about) >> 11) / (1 << 53)
