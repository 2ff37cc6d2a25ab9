"""How two issues hang together by the words that one was closed with for the other."""

from __future__ import annotations

import re

from gis_builder._detect.claims import Claim, ClaimKind
from gis_builder._records import Relation

_PART = re.compile(
    r"part|portion|piece|aspect|sub-?section|sub-?issue|sub-?bug|sub-?case|subset|special case|\bcase of"
    r"|variant of"
)
_SUPERSEDED = re.compile(r"super[cs]ee?d|subsum")
_REPORTED = re.compile(
    r"report|filed|\bopen|exist|known|request|raised|submitted|logged|noted|recorded|registered|mentioned"
    r"|discussed|described|already an? |on file|there\S* (?:is |was )?(?:also )?already|^already$"
)


def relation_of(claim: Claim) -> Relation:
    """The relation that a claim states."""
    if claim.kind is ClaimKind.DUPLICATE:
        return Relation.DUPLICATE
    if claim.kind is ClaimKind.FAVOUR or _SUPERSEDED.search(claim.marker):
        return Relation.SUPERSEDED
    if _PART.search(claim.marker):
        return Relation.PART_OF
    if claim.kind is ClaimKind.SAME:
        return Relation.SAME
    return Relation.REPORTED if _REPORTED.search(claim.marker) else Relation.TRACKED
