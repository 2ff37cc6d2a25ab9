"""Replace credentials and e-mail addresses, which public issues do contain."""

from __future__ import annotations

import re

from gis_builder.pairing.secrets.issued import ISSUED
from gis_builder.pairing.secrets.named import NAMED
from gis_builder.pairing.secrets.values import KINDS as KINDS
from gis_builder.pairing.secrets.values import Shape

_EMAIL = Shape(
    "email",
    ("@",),
    re.compile(
        r"(?<![A-Za-z0-9._%+/@-])(?!git@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@"
        r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,6}"
        r"(?:com|org|net|edu|gov|mil|info|io|dev|app|name|biz|xyz|tech|cloud|email|local|museum|int|pro"
        r"|online|store|site|jobs|team|group|world|agency|network|systems|software|solutions|digital|[a-z]{2})"
        r"(?![A-Za-z0-9_(@-]|\.[A-Za-z]|:[0-9])",
        re.IGNORECASE,
    ),
)
# Credentials with an issuer's prefix come first, so that they are counted as that kind.
SHAPES = (*ISSUED, *NAMED, _EMAIL)
_GATES = tuple({gate for shape in SHAPES for gate in shape.gates})


def scrub_secrets(text: str) -> tuple[str, dict[str, int]]:
    """Replace credentials by `[secret]` and e-mail addresses by `[email]`; also return counts by kind."""
    counts: dict[str, int] = {}
    lower = text.lower()
    present = {gate for gate in _GATES if gate in lower}
    for shape in SHAPES:
        if not present.isdisjoint(shape.gates):
            text, count = _replace(shape, text)
            if count:
                counts[shape.kind] = counts.get(shape.kind, 0) + count
    return text, counts


def _replace(shape: Shape, text: str) -> tuple[str, int]:
    substitute = "[email]" if shape.kind == "email" else "[secret]"
    group = "value" if "value" in shape.pattern.groupindex else 0
    count = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal count
        value, whole = match[group], match[0]
        if shape.accepts is not None and not shape.accepts(value):
            return whole
        count += 1
        start = match.start(group) - match.start()
        return whole[:start] + substitute + whole[start + len(value) :]

    return shape.pattern.sub(replacement, text), count
