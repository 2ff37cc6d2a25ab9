"""Read one text: what is claimed in it, and what else bears on duplicates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import islice

from gis_builder.detection import grammar
from gis_builder.detection.claims import Claim, ClaimKind, Reading, Stance
from gis_builder.detection.explanations import accepts_explanation, explains
from gis_builder.detection.lexicon import Code
from gis_builder.detection.masking import mask
from gis_builder.detection.page import Page
from gis_builder.detection.prefilter import might_guess
from gis_builder.detection.reader import SentenceReader
from gis_builder.detection.references import find_references
from gis_builder.store.records import IssueRef

MOST_CLAIMS = 500  # of a text; nobody makes as many


def read(text: str, issue: IssueRef, former_names: Collection[str] = ()) -> Reading:
    """Read a comment, body or title of `issue`; `former_names` are what its repository was called before."""
    page = Page(text, issue, former_names)
    worth_reading = page.sentences_worth_reading()
    sentences = list(worth_reading.values())
    opening = sentences[0].codes if sentences else ""
    readers = (
        SentenceReader(page, place, sentence) for place, sentence in worth_reading.items() if sentence.codes
    )
    claims = tuple(islice((claim for reader in readers for claim in reader.claims()), MOST_CLAIMS + 1))
    codes = Code.STOP.join(sentence.codes for sentence in sentences)
    if grammar.is_in_jest(codes) or grammar.is_kept_open(codes):
        claims = tuple(_left_open(claim, Stance.ASSERTED) for claim in claims)
    elif Code.UNDECIDED in codes:
        claims = tuple(_left_open(claim) for claim in claims)
    return Reading(
        claims=claims,
        mentions=tuple(dict.fromkeys(reference.ref for reference in page.references)),
        pulls=frozenset(reference.ref for reference in page.references if reference.is_pull),
        agrees=any(
            grammar.begins_with_yes(sentence.codes) and not grammar.says_different(sentence.codes)
            for sentence in sentences
        ),
        thanks=any(grammar.begins_with_thanks(sentence.codes) for sentence in sentences),
        disagrees=grammar.begins_with_no(opening),
        says_different=any(grammar.says_different(sentence.codes) for sentence in sentences),
        says_otherwise=any(grammar.says_fixed(sentence.codes) for sentence in sentences),
        explains=explains(page),
        accepts_explanation=accepts_explanation(page),
        speaks_of_duplicates=any(Code.DUPLICATE in sentence.codes for sentence in sentences),
        reopens=any(grammar.is_reopening(sentence.codes) for sentence in sentences),
        is_closing=any(Code.CLOSE in sentence.codes for sentence in sentences),
        words=len(page.hidden.split()),
    )


def _left_open(claim: Claim, *also: Stance) -> Claim:
    """A claim of a speaker who leaves it open: what is supposed or asked, and what `also` says."""
    is_left = claim.stance in (Stance.HEDGED, Stance.ASKED, *also)
    return replace(claim, stance=Stance.OPEN) if is_left else claim


def read_body(text: str, issue: IssueRef, former_names: Collection[str] = ()) -> Reading:
    """Read the body of `issue`, as it was written before anybody looked: what it names, and its guesses.

    A guess speaks of "this" and of a duplicate; it is no more than hedged, and closes nothing.
    """
    if not might_guess(text):
        references = find_references(mask(text), issue.repo, former_names)
        return Reading(mentions=tuple(dict.fromkeys(reference.ref for reference in references)))
    reading = read(text, issue, former_names)
    guesses = tuple(
        replace(claim, stance=Stance.HEDGED, is_closing=False)
        for claim in reading.claims
        if claim.kind is ClaimKind.DUPLICATE and claim.stance is not Stance.DENIED and claim.about_this
    )
    return Reading(claims=guesses, mentions=reading.mentions)
