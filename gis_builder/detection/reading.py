"""Read one text: its claims, and everything else in it that matters for duplicates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from gis_builder.detection.claim_reader import (
    AGREEMENT,
    DISAGREEMENT,
    THANKS,
    Claim,
    SentenceReader,
    Stance,
    is_kept_open,
    is_reopening,
    says_different,
    says_fixed,
)
from gis_builder.detection.issue_references import REFERENCE_MARK, find_references
from gis_builder.detection.lexicon import (
    ENGLISH,
    Code,
    code_pattern,
    filled,
    has_any,
)
from gis_builder.detection.page import PreparedText, mask, might_guess
from gis_builder.detection.rules import ClaimKind
from gis_builder.store import IssueRef, IssueRefs
from pairkit.similarity.terms import segmented

MAX_CLAIMS = 500  # in one thread, with their targets; people never make so many

_DOUBTED = re.compile(
    r"(?:\b(?:not|never|if|whether|unless|hardly)\b|n't\b)[^,.\x01]{0,30}$"
)
# After a guess: "It is a different issue though.", "But it isn't.", ", but it isn't."
_TAKES_BACK = code_pattern(
    r"STOP [WORD COMMA]{0,2} THIS IS? FILLER?"
    r" (?:ARTICLE? DIFFERENT [ISSUE COMMA STOP] | NOT WORD? (?:STOP | $))"
    r"| [REFERENCE DUPLICATE SAME] [^STOP REFERENCE]{0,6}? [COMMA AND WORD] [COMMA WORD IS THIS ARTICLE]{0,4}"
    r" [NOT NO DIFFERENT] [IS ARTICLE FILLER THIS]{0,2} (?:STOP | $)"
)
# "makes sense", "thanks for the explanation"
_ACCEPTS = re.compile(
    r"\bmakes (?:\w{1,12} )?sense\b|\bexplains (?:it|that|this|why|everything)\b"
    r"|\bclears (?:it|this|that|things) up\b"
    r"|\b(?:thanks|thank you|thx)[^.\n]{0,20}(?:explanation|explaining|clarif)".replace(
        " ", r"\s{1,3}"
    )
)


@dataclass(frozen=True, slots=True)
class TextReading:
    """What one text says about duplicates."""

    claims: tuple[Claim, ...] = ()
    mentions: IssueRefs = ()  # every reference, in order
    # Those of the mentions that the text shows to be pull requests.
    pulls: frozenset[IssueRef] = frozenset()
    # Mentions that a sentence is about: "see #1", "#1?"
    pointed_at: frozenset[IssueRef] = frozenset()
    agrees: bool = False  # begins with "yes", "indeed", "you're right"
    thanks: bool = False  # "thanks", "oh", "sorry": accepts the previous statement
    disagrees: bool = False  # begins with "no,"
    says_different: bool = False  # "this is not the same", "different cause"
    gives_other_reason: bool = False  # to close the issue: fixed, works now, expected
    explains: bool = False  # by design, a bug elsewhere, the reporter's mistake
    accepts_explanation: bool = False  # "makes sense", "thanks for explaining"
    speaks_of_duplicates: bool = False
    reopens: bool = False
    is_closing: bool = False
    word_count: int = 0


class _Phrase(NamedTuple):
    stems: tuple[str, ...]  # if a text has none of these, the slower pattern is skipped
    pattern: re.Pattern[str]


def _phrases(name: str) -> tuple[_Phrase, ...]:
    parts = ENGLISH["parts"]
    return tuple(
        _Phrase(
            tuple(stems),
            re.compile(filled("".join(lines), parts).replace(" ", r"\s{1,3}")),
        )
        for stems, *lines in ENGLISH[name]
    )


_NO_BUG_PHRASES = _phrases("no_bug")
_CAUSE_PHRASES = _phrases("cause")


def explains(page: PreparedText) -> bool:
    """Whether a text explains the reported problem without another issue."""
    no_bug = _present(_NO_BUG_PHRASES, page.hidden)
    cause = _present(_CAUSE_PHRASES, page.hidden)
    if not no_bug and not cause:
        return False
    for start, end in page.spans:
        sentence = page.hidden[start:end]
        if not sentence.rstrip().endswith("?"):
            phrases = no_bug if REFERENCE_MARK in sentence else no_bug + cause
            if any(_is_said(phrase, sentence) for phrase in phrases):
                return True
    return False


def _present(phrases: tuple[_Phrase, ...], text: str) -> tuple[_Phrase, ...]:
    return tuple(phrase for phrase in phrases if has_any(text, phrase.stems))


def _is_said(phrase: _Phrase, sentence: str) -> bool:
    match = phrase.pattern.search(sentence)
    if match is None:
        return False
    start = match.start()
    return _DOUBTED.search(sentence, max(0, start - 40), start) is None


def read(text: str, issue: IssueRef, former_names: Collection[str] = ()) -> TextReading:
    """Read a comment, body or title of `issue`; `former_names` are earlier names of its repository."""
    page = PreparedText(text, issue, former_names)
    worth_reading = page.worth_reading()
    sentences = [page.sentence(index).codes for index in worth_reading]
    codes = Code.STOP.join(sentences)
    return TextReading(
        claims=tuple(_claims(page, worth_reading, codes)),
        mentions=tuple(dict.fromkeys(reference.ref for reference in page.references)),
        pulls=frozenset(
            reference.ref for reference in page.references if reference.is_pull
        ),
        pointed_at=page.points_at(),
        agrees=any(
            AGREEMENT.match(sentence) and not says_different(sentence)
            for sentence in sentences
        ),
        thanks=any(map(THANKS.match, sentences)),
        disagrees=any(map(DISAGREEMENT.match, sentences[:1])),
        says_different=any(map(says_different, sentences)),
        gives_other_reason=any(map(says_fixed, sentences)),
        explains=explains(page),
        accepts_explanation=_ACCEPTS.search(page.hidden) is not None,
        speaks_of_duplicates=Code.DUPLICATE in codes,
        reopens=any(map(is_reopening, sentences)),
        is_closing=Code.CLOSE in codes,
        word_count=len(segmented(page.hidden).split()),
    )


def _claims(page: PreparedText, indices: Iterable[int], codes: str) -> list[Claim]:
    """The claims in these sentences of a text; `codes` are those of all its sentences."""
    all_claims = chain.from_iterable(
        SentenceReader(page, index).claims()
        for index in indices
        if page.sentence(index).codes
    )
    claims = list(islice(all_claims, MAX_CLAIMS + 1))
    if Code.JOKE in codes or is_kept_open(codes):
        return [_left_open(claim, Stance.ASSERTED) for claim in claims]
    if Code.UNDECIDED in codes or _TAKES_BACK.search(codes):
        return [_left_open(claim) for claim in claims]
    return claims


def _left_open(claim: Claim, *also: Stance) -> Claim:
    """The claim as an open question, if it is a guess, a question or one of these stances."""
    if claim.stance in (Stance.HEDGED, Stance.ASKED, *also):
        return replace(claim, stance=Stance.OPEN)
    return claim


def read_body(
    text: str, issue: IssueRef, former_names: Collection[str] = ()
) -> TextReading:
    """Read the body of `issue`: its mentions and guesses, since the author wrote it before any answer."""
    if not might_guess(text):
        references = find_references(mask(text), issue.repo, former_names)
        return TextReading(
            mentions=tuple(dict.fromkeys(reference.ref for reference in references))
        )
    reading = read(text, issue, former_names)
    guesses = tuple(
        replace(claim, stance=Stance.HEDGED, is_closing=False)
        for claim in reading.claims
        if claim.kind is ClaimKind.DUPLICATE
        and claim.stance is not Stance.DENIED
        and claim.about_this
    )
    return TextReading(claims=guesses, mentions=reading.mentions)
