"""Quotes around a whole sentence, told from quotes that are its own."""

from __future__ import annotations

import re

from llm_labeler._parse.source import Source, size_of

_SPAN = re.compile(
    r"\"(?P<straight>[^\"\n]{2,2000})\"|“(?P<curly>[^“”\n]{2,2000})[”“]|„(?P<low>[^“”„\n]{2,2000})[“”]"
    r"|「(?P<corner>[^「」\n]{2,2000})」|『(?P<double>[^『』\n]{2,2000})』|«(?P<angle>[^«»\n]{2,2000})»"
    r"|\*\*(?P<bold>[^*\n]{2,2000})\*\*"
    r"|(?:(?<=[\s(:,])"
    r"|^)['‘](?P<single>[^\n'’‘]{2,2000}(?:['’](?=\w)[^\n'’‘]{0,2000}){0,9})['’](?=[\s.,;:)!?]|$)"
)
_ANY = re.compile(r"[\"“”„「」『』«»]|\*\*")
_ENDED = re.compile(r"[.!?。…]['’]?$")
# What stands before a quoted sentence that is offered.
_OFFER = re.compile(
    r"(?:\b(?:say|said|write|phrase|express|ask|put|state|rephrase|reword|rewrite|change|be|is|are"
    r"|becomes?|or|and|use|try|with|like"
    r"|alternatively|instead|another|also|option|sentence|as|to|of|for|follows?|synonym|antonym|opposite"
    r"|version)|[:→>-]|说|是|为|或|即|oder|o|u)"
    r"[\s,:*_]*(?:it |this |that |as |something like |simply |just )*\s*$",
    re.IGNORECASE,
)

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
        bare, tail = bare[:-1].rstrip(), bare[-1] + tail
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


def offered(said: str, source: Source) -> list[tuple[str, bool]] | None:
    """A piece as stretches, each with whether it is a quoted sentence; None if it isn't such a piece.

    So it is if whole sentences are quoted, as in `You could say "…" or "…".` and `"…" Another verb.`,
    and the sentence asked about has no quotes.
    """
    if not source.lacks(_ANY) or (_CLOSER.get(said[:1]) == said[-1:] and _encloses(said)):
        return None
    spans = [match for match in _SPAN.finditer(said) if _is_whole(match, source)]
    if not spans or (spans[0].start() < 3 and len(said) - spans[-1].end() < 3 and len(spans) == 1):
        return None
    before = said[: spans[0].start()].strip(" *_(-–—•")
    if before and not _OFFER.search(before):
        return None
    stretches: list[tuple[str, bool]] = []
    place = 0
    for span in spans:
        stretches += [(said[place : span.start()], False), (span[span.lastgroup or 0], True)]
        place = span.end()
    stretches.append((said[place:], False))
    return [(text.strip(), is_quoted) for text, is_quoted in stretches if any(c.isalnum() for c in text)]


def _is_whole(span: re.Match[str], source: Source) -> bool:
    quoted = span[span.lastgroup or 0]
    if quoted[0].islower() and source.text[:1].isupper() and not _ENDED.search(quoted):
        return False  # words of the sentence around them
    is_long = 5 * size_of(quoted) >= 3 * source.size
    is_whole = is_long or (source.is_as_long_as(quoted) and _ENDED.search(quoted) is not None)
    return is_whole and (span.lastgroup != "single" or quoted.count(" ") > 1)
