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

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from llm_labeler.settings import TextSplitSettings
from pairkit.app.printable import normalize
from pairkit.similarity.groups import Places, alone, connected
from pairkit.similarity.near_duplicates import TextSequence, near_identical_to
from pairkit.system.seeded import keyed_unit

_TRAIN, _VALIDATION, _TEST = range(3)
_NAMES = ("train", "validation", "test")
_LARGEST_HELD_OUT = 10  # texts in a group; a number, not a share, as the latter would move with the input
_FEWEST_GROUPS = 20  # from which no wanted split stays empty


def split_texts(
    ids: Sequence[str],
    sentences: TextSequence,
    owners: Places,
    settings: TextSplitSettings,
    seed: int,
) -> list[str]:
    """The split (`train`, `validation`, `test`) of every text; (text,)."""
    groups = _tied(len(ids), sentences, owners)
    firsts = np.flatnonzero(groups == alone(len(ids)))
    sizes = np.bincount(groups, minlength=len(ids))[firsts]
    draws = np.fromiter(
        (keyed_unit(seed, "split", ids[first]) for first in firsts.tolist()), np.float64, len(firsts)
    )
    splits = np.zeros(len(ids), np.int8)
    splits[firsts] = _assign_splits(sizes, draws, settings)
    return [_NAMES[split] for split in splits[groups]]


def normalised(sentence: str) -> str:
    """What two sentences share that count as one: case, width and blanks aside."""
    # Folding can undo the normal form and the other way round; twice is enough to settle it.
    folded = normalize("NFKC", sentence).casefold()
    return " ".join(normalize("NFKC", folded).casefold().split())


def _tied(count: int, sentences: TextSequence, owners: Places) -> Places:
    """The first of the texts that each text may not be parted from."""
    near = near_identical_to(sentences)
    groups = connected(alone(count), owners, owners[near])
    del near
    return connected(groups, *_sharing(sentences, owners))


def _sharing(sentences: TextSequence, owners: Places) -> tuple[Places, Places]:
    """Texts that have a sentence in common."""
    keys = np.fromiter(map(_key, iter(sentences)), np.uint64, len(sentences))
    order = np.argsort(keys)
    order = order[np.searchsorted(keys[order], 1) :]  # a sentence that says nothing has no key
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return owners[order[same]], owners[order[same + 1]]


def _key(sentence: str) -> int:
    """64 bits that stand for what a sentence says; 0 where it says nothing."""
    said = normalised(sentence)
    if not said:
        return 0
    data = said.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1


def _assign_splits(
    sizes: npt.NDArray[np.int64], draws: npt.NDArray[np.float64], settings: TextSplitSettings
) -> npt.NDArray[np.int8]:
    """The split of every group, given the number of its texts and its draw; (group,) all."""
    shares = {_TEST: settings.test, _VALIDATION: settings.validation}
    total = int(sizes.sum())
    most = {split: min(_LARGEST_HELD_OUT, max(1, round(share * total))) for split, share in shares.items()}
    splits = np.full(len(sizes), _TRAIN, np.int8)
    is_test = draws < settings.test
    splits[is_test & (sizes <= most[_TEST])] = _TEST
    is_validation = ~is_test & (draws < settings.test + settings.validation)
    splits[is_validation & (sizes <= most[_VALIDATION])] = _VALIDATION
    if len(sizes) and not (splits == _TRAIN).any():
        splits[np.lexsort((draws, -sizes))[0]] = _TRAIN
    if len(sizes) >= _FEWEST_GROUPS:
        for split, share in shares.items():
            if share > 0 and not (splits == split).any():
                left = np.flatnonzero(splits == np.bincount(splits, minlength=len(_NAMES)).argmax())
                smallest = np.lexsort((draws[left], np.maximum(sizes[left], most[split])))[0]
                splits[left[smallest]] = split
    return splits
