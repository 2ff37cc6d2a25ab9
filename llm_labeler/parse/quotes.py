"""Quotes around a whole sentence, told from quotes that are its own."""

from __future__ import annotations

_CLOSER = {
    "“": "”",
    "„": "“",
    "「": "」",
    "『": "』",
    "«": "»",
    "‘": "’",
    "《": "》",
    '"': '"',
    "'": "'",
    "`": "`",
}
_DOUBLE = '"“”„「」『』«»'
_ENDS = ".!?。,;、"


def unquote(sentence: str) -> str:
    """`sentence` without the quotes that enclose all of it, its full stop aside; at most three pairs."""
    for _ in range(3):
        inner = _inside(sentence)
        if inner == sentence:
            break
        sentence = inner
    return sentence


def _inside(sentence: str) -> str:
    if len(sentence) < 2:
        return sentence
    bare = sentence
    tail = ""
    while bare and bare[-1] in _ENDS and len(tail) < 2:
        bare, tail = bare[:-1], bare[-1] + tail
    for body, end in ((sentence, ""), (bare, tail.rstrip(",;、"))):
        if len(body) >= 2 and _CLOSER.get(body[0]) == body[-1] and _encloses(body):
            inner = body[1:-1].strip()
            return inner if inner.endswith(tuple(".!?。")) else inner + end
    return _without_stray(sentence)


def _encloses(body: str) -> bool:
    """Whether the last quote closes the first: `"A" and "B"` is not one quotation, `"A "B" C"` is."""
    opener, closer, inner = body[0], body[-1], body[1:-1]
    if opener != closer:
        depth = 1
        for place in (place for place, character in enumerate(inner) if character in (opener, closer)):
            if closer == "’" and inner[place] == "’" and inner[place + 1 : place + 2].isalpha():
                continue  # an apostrophe
            depth += 1 if inner[place] == opener else -1
            if depth == 0:
                return False
        return True
    for place, character in enumerate(inner):
        if character != opener or inner[place - 1 : place] == "\\":
            continue
        before, after = inner[place - 1 : place] if place else "", inner[place + 1 : place + 2]
        if opener == "'" and before.isalnum() and after.isalnum():
            continue
        return not before or before.isspace() or before in "([{-—"  # the first one inside opens again
    return True


def _without_stray(sentence: str) -> str:
    """A double quote at one end that has no partner goes."""
    if sentence[0] in _DOUBLE and not any(character in _DOUBLE for character in sentence[1:]):
        return sentence[1:].strip()
    if sentence[-1] in _DOUBLE and not any(character in _DOUBLE for character in sentence[:-1]):
        return sentence[:-1].strip()
    return sentence
