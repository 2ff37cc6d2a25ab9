"""Texts that are nearly the same: MinHash proposes families, exact Jaccard similarity decides.

The similarity of two texts is |A and B| / |A or B| over their sets of three words in a row (lower case; a
text of fewer words is one unit). Texts whose sketches agree in a band are of one family, and so are theirs;
within a family every pair at the threshold or above is tied, exactly. A pair at 0.9 or more comes into one
family all but surely, one at 0.8 with probability 0.95. What is found is a function of the texts and the
threshold alone: no process, hash seed or order of input changes it. Of a part of the texts never more is
found than of the whole: who is of one family in the part is so in the whole.

Time and memory grow with the number of texts, also where all are made from one template; `jaccard_join`
says for which they do not. Beside the texts, which may lie on disk, each takes some 50 bytes of memory; what
the largest family takes comes on top.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from pairkit.connected import Places, alone, connected, shared
from pairkit.families import families
from pairkit.jaccard_join import Hashes, tied_sets
from pairkit.shingles import CHUNK, WORD, Shingler, Texts

DEFAULT_THRESHOLD = 0.8
_LOG = logging.getLogger(__name__)

_FEW = 8  # texts of a family that are compared pair by pair
_NO_WORDS = bytes(16)


def near_identical(texts: Texts, threshold: float = DEFAULT_THRESHOLD) -> list[list[int]]:
    """Groups of two or more positions whose texts are tied, directly or through others; each ascending.

    Args:
        texts: Texts in any order; equal texts are always tied, texts without a word never.
        threshold: Jaccard similarity in (0, 1] from which two texts are tied.

    Raises:
        ConfigError: There are many texts, and the disk of temporary files is full.
    """
    return [members.tolist() for members in shared(near_identical_to(texts, threshold))]


def near_identical_to(texts: Texts, threshold: float = DEFAULT_THRESHOLD) -> Places:
    """The same as the first position of each text's group, its own where it is tied to none; (text,)."""
    shingler = Shingler()
    first, has_words = _equal(texts)
    one, other = array("q"), array("q")
    for family in families(texts, np.flatnonzero(has_words & (first == alone(len(first)))), shingler):
        members = family.tolist()
        sets = list(shingler.sets(texts[member] for member in members))
        for this, that in _tied(sets, threshold):
            one.append(members[this])
            other.append(members[that])
    groups = connected(first, np.array(one, np.int64), np.array(other, np.int64))
    found = len(np.unique(groups[groups != alone(len(groups))]))
    _LOG.info("near-identical at %g: %d groups among %d texts", threshold, found, len(groups))
    return groups


def similarity(one: str, other: str) -> float:
    """The exact similarity of two texts; 0 if either has no words."""
    shingler = Shingler()
    return jaccard(shingler.shingles(one), shingler.shingles(other))


def jaccard(one: Hashes, other: Hashes) -> float:
    """Share of common elements of two sorted arrays without repeats; 0 if either is empty."""
    if not len(one) or not len(other):
        return 0.0
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


def _equal(texts: Texts) -> tuple[Places, npt.NDArray[np.bool_]]:
    """The first of the texts that are equal to each, and whether it has a word; (text,) both."""
    digests, start, remaining = np.empty((len(texts), 2), np.uint64), 0, iter(texts)
    while some := [_digest(text) for text in islice(remaining, CHUNK)]:
        digests[start : start + len(some)] = np.frombuffer(b"".join(some), np.uint64).reshape(-1, 2)
        start += len(some)
    has_words = (digests[:, 0] | digests[:, 1]) != 0
    order = np.argsort(digests[:, 0])
    ordered = digests[order, 0]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    del ordered
    # Half a digest agrees: few, so that the whole may be looked at.
    rows = np.unique(np.concatenate([order[same], order[same + 1]]))
    rows = rows[has_words[rows]]
    rows = rows[np.lexsort((digests[rows, 1], digests[rows, 0]))]
    equal = (digests[rows[1:]] == digests[rows[:-1]]).all(axis=1)
    return connected(alone(len(texts)), rows[:-1][equal], rows[1:][equal]), has_words


def _digest(text: str) -> bytes:
    """128 bits that stand for a text's words, blanks and case aside; zeros where it has none."""
    words = " ".join(text.lower().split())
    if not WORD.search(words):
        return _NO_WORDS
    return blake2b(words.encode("utf-8", "replace"), digest_size=16).digest()


def _tied(sets: Sequence[Hashes], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs of places that tie all that are tied, directly or through others."""
    if len(sets) <= _FEW:
        for one, other in combinations(range(len(sets)), 2):
            if jaccard(sets[one], sets[other]) >= threshold:
                yield one, other
        return
    distinct: dict[bytes, int] = {}
    for place, elements in enumerate(sets):
        first = distinct.setdefault(blake2b(elements.tobytes(), digest_size=16).digest(), place)
        if first != place:
            yield first, place
    places = list(distinct.values())
    named: dict[int, int] = {}
    for place, group in zip(
        places, tied_sets([sets[place] for place in places], threshold).tolist(), strict=True
    ):
        first = named.setdefault(group, place)
        if first != place:
            yield first, place
