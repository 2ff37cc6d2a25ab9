"""Which split each source text goes to, with everything that says the same as it or its candidates.

Texts are never parted from what they are tied to: a text that is nearly the same, and whoever has a sentence
in common with them, as text or as candidate. So no sentence stands in two splits.

Each group of tied texts draws its split by a hash of its own. The price is that shares are met on average
only (of 2,000 texts at 5 % about 100, give or take 10); what is bought is that a text stays where it is when
others are added, so that what one version trained on never becomes the next one's test data. Groups of more
than ten texts always go to train, and so do those of more texts than a share wants. Two exceptions, both for
small inputs: a share that nobody drew gets one group where there are 20 or more, and train is never empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from llm_labeler._settings import SplitSettings
from pairkit.composing import normalize
from pairkit.groups import Groups
from pairkit.keyed import keyed_unit
from pairkit.similar import near_identical

_TRAIN, _VALIDATION, _TEST = "train", "validation", "test"
_LARGEST_HELD_OUT = 10  # texts in a group; a number, not a share, as the latter would move with the input
_FEWEST_GROUPS = 20  # from which no wanted split stays empty


def split_texts(
    texts: Mapping[str, str], candidates: Iterable[tuple[str, str]], settings: SplitSettings, seed: int
) -> dict[str, str]:
    """The split (`train`, `validation`, `test`) of every text.

    Args:
        texts: text_id to text.
        candidates: (text_id, candidate) of every pair that may be written; their order does not matter.
        settings: The shares of the texts that validation and test get.
        seed: Decides what the shares leave open.

    Returns:
        text_id to split, in the order of `texts`.
    """
    groups = _tied(texts, candidates).all()
    split_of_group = _deal({name: len(members) for name, members in groups.items()}, settings, seed)
    split_of = {member: split_of_group[name] for name, members in groups.items() for member in members}
    return {text_id: split_of[text_id] for text_id in texts}


def normalised(sentence: str) -> str:
    """What two sentences share that count as one: case, width and blanks aside."""
    # Folding can undo the normal form and the other way round; twice is enough to settle it.
    folded = normalize("NFKC", sentence).casefold()
    return " ".join(normalize("NFKC", folded).casefold().split())


def _tied(texts: Mapping[str, str], candidates: Iterable[tuple[str, str]]) -> Groups[str]:
    ids = sorted(texts)
    groups = Groups(ids)
    proposed = sorted(candidates)
    owners = [*ids, *(text_id for text_id, _ in proposed)]
    sentences = [*(texts[text_id] for text_id in ids), *(sentence for _, sentence in proposed)]
    for positions in near_identical(sentences):
        for other in positions[1:]:
            groups.join(owners[positions[0]], owners[other])
    for one, two in _sharing(ids, texts, proposed):
        groups.join(one, two)
    return groups


def _sharing(
    ids: Sequence[str], texts: Mapping[str, str], candidates: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Texts that have a sentence in common; as numbers, since there may be many millions of sentences."""
    place = {text_id: number for number, text_id in enumerate(ids)}
    sentences, owners = array("Q"), array("L")
    for said in (texts.items(), candidates):
        for text_id, sentence in said:
            if key := normalised(sentence):
                data = key.encode("utf-8", "surrogatepass")
                sentences.append(int.from_bytes(blake2b(data, digest_size=8).digest(), "little"))
                owners.append(place[text_id])
    keys = np.array(sentences, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    for row in np.flatnonzero(keys[1:] == keys[:-1]):
        yield ids[owners[order[row]]], ids[owners[order[row + 1]]]


def _deal(sizes: Mapping[str, int], settings: SplitSettings, seed: int) -> dict[str, str]:
    """The split of every group, given the number of its texts."""
    shares = {_TEST: settings.test, _VALIDATION: settings.validation}
    draws = {name: keyed_unit(seed, "split", name) for name in sizes}
    total = sum(sizes.values())
    most = {split: min(_LARGEST_HELD_OUT, max(1, round(share * total))) for split, share in shares.items()}
    dealt = {}
    for name, draw in draws.items():
        split = _drawn(draw, settings)
        dealt[name] = split if sizes[name] <= most.get(split, total) else _TRAIN
    if dealt and _TRAIN not in dealt.values():
        dealt[min(sizes, key=lambda name: (-sizes[name], draws[name]))] = _TRAIN
    if len(sizes) >= _FEWEST_GROUPS:
        for split, share in shares.items():
            if share > 0 and split not in dealt.values():
                fullest = max((_TRAIN, _VALIDATION, _TEST), key=[*dealt.values()].count)
                left = [name for name in sizes if dealt[name] == fullest]
                dealt[min(left, key=lambda name: (max(sizes[name], most[split]), draws[name]))] = split
    return dealt


def _drawn(draw: float, settings: SplitSettings) -> str:
    if draw < settings.test:
        return _TEST
    return _VALIDATION if draw < settings.test + settings.validation else _TRAIN
