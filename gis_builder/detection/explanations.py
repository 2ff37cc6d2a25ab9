"""Find what explains an issue otherwise: "this is by design", "a bug in another library", "my mistake".

What was only supposed to be a duplicate is then no longer what the issue was closed for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gis_builder.detection.page import Page
from gis_builder.detection.prefilter import has_any
from gis_builder.detection.tokens import REFERENCE_MARK

_IT = r"(?:this|it|that|these|which)(?:'s| is| was| are| were|'re)"
_QUITE = r"(?: actually| really| indeed| just| simply| probably| all| in fact| likely| rather)?"
_FAULT = (
    r"(?:mistake|error|fault|misunderstanding|misconfiguration|misuse|typo|oversight|set-?up|config\w*"
    r"|environment|hardware|network|proxy|antivirus|driver)"
)
_BUG = r"(?:bug|issue|problem|regression|limitation|defect)"
_NOT_TO = (
    r"(?:can(?:no|')t|can not|could(?: not|n't)|unable to|not able to|failed to|did(?: not|n't)|no longer)"
)
_RENEW = r"(?:updat|upgrad|downgrad|re-?install|re-?build|re-?start|re-?boot|clean|clear|delet|remov|disabl)"
_MENDING = "fixed|fixes|solve|resolve|cure|help|worked|did it|gone|goes away|went away|works"
_MENDED = r"(?:fixed|fixes|solved|solves|resolved|resolves|cured|cures|helped|helps|worked|did it)"

# Each with words of which the text must hold one: a cheap test before the pattern.
# It is no bug, the reporter's own doing, or gone, whatever other issue is named beside it.
_NO_BUG = (
    ("design", r"\b(?:by|per) design\b"),
    (
        "as intended|as designed|as expected|as documented",
        r"\b(?:works?|working|behav(?:es|ed|ing)|functions?|is)"
        r" as (?:intended|designed|expected|documented)\b",
    ),
    (
        "expected|intended|intentional|deliberate|documented",
        rf"{_IT}{_QUITE} (?:(?:the|an?) )?(?:expected|intended|intentional|deliberate|documented)\b",
    ),
    ("behavio", r"\b(?:expected|intended|documented) behaviou?r\b"),
    (
        "not a|n't a|not really|n't really|not actually|n't actually",
        rf"\b(?:not|\w+n't){_QUITE} an? (?:\w+ )?{_BUG}\b(?! (?:of|with|that|which|we|i|you|for)\b)",
    ),
    (
        " error|pebkac|nonissue|non-issue|misconfig",
        r"\b(?:user|operator|pilot) error\b|\bpebkac\b|\bnon-?issue\b|\bmisconfigur\w+",
    ),
    (
        "s my|s our|s the user's|y my|y our|re my",
        rf"{_IT}{_QUITE} (?:my|our|the user's)(?: own)?(?: \w+)? {_FAULT}\b",
    ),
    (
        "o my|f my|y my|e my|m my|o our|f our|y our|e our|m our",
        r"\b(?:due to|because of|caused by|turn(?:s|ed) out to be|stems from) (?:my|our)\b",
    ),
    (
        "misread|misunderst|misinterp|mistyped|forgot to",
        r"\bi (?:had )?(?:mis(?:read|understood|interpreted|typed)|forgot to)\b",
    ),
    (
        "repro",
        rf"\b{_NOT_TO} (?:longer |seem to |be able to |manage to )?(?:re-?produce|repro)\b"
        r"|\bnot reproducible\b",
    ),
    (
        "happen|occur|reproduce",
        r"\b(?:no longer|(?:does|did)(?: not|n't)) (?:\w+ )?(?:happens?|occurs?|reproduces?)\b",
    ),
    (
        "works |now ",
        r"\bworks (?:now|fine|for me|again)\b|\bnow (?:works|succeeds|compiles|builds|passes)\b",
    ),
    (_MENDING, rf"\b{_RENEW}(?:e|ed|ing|es)?\b(?:(?! if )[^.\x01]){{0,50}}\b{_MENDED}\b"),
    (
        _MENDING,
        r"\b(?:fixed|solved|resolved|gone|went away|goes away|works?) (?:it |this |that |now )?"
        rf"(?:by|with|after) {_RENEW}",
    ),
)
# It has another cause; where an issue is named in the same breath, that may be the cause of both.
_CAUSE = (
    (
        "bug in|bug with|bug of|issue in|issue with|problem in|problem with|regression in|limitation",
        rf"{_IT}{_QUITE} (?:an? |the )?(?:\w+ )?{_BUG} (?:in|with|of|on) (?!the same\b|this\b)",
    ),
    (
        "upstream|up-stream",
        rf"\bup-?stream {_BUG}\b|\b{_BUG} (?:is |was |lies )?(?:\w+ )?up-?stream\b"
        r"|\b(?:reported|filed|sent) (?:this |it |that )?up-?stream\b",
    ),
    ("turn", r"\bturn(?:s|ed) out\b(?! (?:to be |it's |it is |this is |that )?(?:the same|already))"),
    (
        "real |actual |root |true |culprit",
        r"\b(?:real|actual|root|true) (?:cause|problem|reason|issue) (?:here )?(?:is|was)\b|\bculprit\b",
    ),
    (
        "due to|caused by|triggered by|s because|just because",
        rf"{_IT}{_QUITE} (?:because|due to|caused by|triggered by)\b(?! the same\b)",
    ),
)
_DOUBTED = re.compile(r"(?:\b(?:not|never|if|whether|unless|hardly)\b|n't\b)[^,.\x01]{0,30}$")
_ACCEPTS = re.compile(
    r"\bmakes (?:\w{1,12} )?sense\b|\bexplains (?:it|that|this|why|everything)\b"
    r"|\bclears (?:it|this|that|things) up\b"
    r"|\b(?:thanks|thank you|thx)[^.\n]{0,20}(?:explanation|explaining|clarif)".replace(" ", r"\s{1,3}")
)


class _Turn(NamedTuple):
    """A turn of speech, and the words of which a text with it holds one."""

    stems: tuple[str, ...]
    pattern: re.Pattern[str]


def _compiled(table: Iterable[tuple[str, str]]) -> tuple[_Turn, ...]:
    return tuple(
        _Turn(tuple(stems.split("|")), re.compile(pattern.replace(" ", r"\s{1,3}")))
        for stems, pattern in table
    )


_NO_BUG_TURNS, _CAUSE_TURNS = _compiled(_NO_BUG), _compiled(_CAUSE)


def explains(page: Page) -> bool:
    """Whether a text gives another reason for what its issue reports than another issue."""
    no_bug, cause = _present(_NO_BUG_TURNS, page.hidden), _present(_CAUSE_TURNS, page.hidden)
    if not no_bug and not cause:
        return False
    for start, end in page.spans:
        sentence = page.hidden[start:end]
        if not sentence.rstrip().endswith("?"):
            turns = no_bug if REFERENCE_MARK in sentence else no_bug + cause
            if any(_is_said(turn, sentence) for turn in turns):
                return True
    return False


def _present(turns: tuple[_Turn, ...], text: str) -> tuple[_Turn, ...]:
    return tuple(turn for turn in turns if has_any(text, turn.stems))


def _is_said(turn: _Turn, sentence: str) -> bool:
    found = turn.pattern.search(sentence)
    return found is not None and _DOUBTED.search(sentence, max(0, found.start() - 40), found.start()) is None


def accepts_explanation(page: Page) -> bool:
    """Whether a text takes what was explained: "makes sense", "thanks for the explanation"."""
    return _ACCEPTS.search(page.hidden) is not None
