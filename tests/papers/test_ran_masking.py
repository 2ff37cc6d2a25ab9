from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.app.errors import ConfigError
from papers.ran.masking import IGNORED, Vocabulary, mask_words
from papers.ran.settings import MaskSettings
from tests.aoe_train.tiny import bytelevel, wordpiece

TOKENIZER = wordpiece()
VOCABULARY = Vocabulary.of(TOKENIZER)
SPECIAL = sorted(TOKENIZER.all_special_ids)
TOKENS = st.lists(st.integers(0, len(TOKENIZER) - 1), min_size=1, max_size=60).map(np.array)


def words(ids: np.ndarray) -> list[list[int]]:
    """Places of each word, by the plain definition."""
    found: list[list[int]] = []
    open_word = False
    for place, token in enumerate(TOKENIZER.convert_ids_to_tokens(ids.tolist())):
        if ids[place] in SPECIAL:
            open_word = False
        elif token.startswith("##") and open_word:
            found[-1].append(place)
        else:
            found.append([place])
            open_word = True
    return found


@given(TOKENS, st.integers(0, 2**31), st.floats(0.05, 0.9))
def test_whole_words_are_hidden_up_to_the_share(ids: np.ndarray, seed: int, share: float):
    shown, labels = mask_words(ids, VOCABULARY, MaskSettings(share=share), (seed, 0, 0))
    hidden = labels != IGNORED
    np.testing.assert_array_equal(labels[hidden], ids[hidden])
    np.testing.assert_array_equal(shown[~hidden], ids[~hidden])
    for word in words(ids):
        assert hidden[word].all() or not hidden[word].any()
    ordinary = sum(len(word) for word in words(ids))
    assert hidden.sum() <= max(1, round(share * ordinary))
    if any(len(word) == 1 for word in words(ids)):
        assert hidden.any()
    assert not set(shown[hidden]) & set(SPECIAL) - {VOCABULARY.mask_id}


def test_the_shares_are_those_asked_for():
    ids = np.array(
        TOKENIZER("the old crash not the new error of a large compiler", add_special_tokens=False).input_ids
    )
    counts = np.zeros(3)
    for row in range(3000):
        shown, labels = mask_words(ids, VOCABULARY, MaskSettings(share=0.3), (1, 0, row))
        hidden = labels != IGNORED
        masked, same = shown[hidden] == VOCABULARY.mask_id, shown[hidden] == ids[hidden]
        counts += [masked.sum(), (~masked & ~same).sum(), same.sum()]
    np.testing.assert_allclose(counts / counts.sum(), [0.8, 0.1, 0.1], atol=0.015)


def test_seed_epoch_and_row_decide():
    ids = np.arange(5, 45)
    first = [mask_words(ids, VOCABULARY, MaskSettings(), (1, 2, 3)) for _ in range(2)]
    np.testing.assert_array_equal(first[0], first[1])
    for key in ((2, 2, 3), (1, 3, 3), (1, 2, 4)):
        assert not np.array_equal(first[0], mask_words(ids, VOCABULARY, MaskSettings(), key))


def test_special_tokens_alone_stay():
    shown, labels = mask_words(np.array(SPECIAL), VOCABULARY, MaskSettings(), (0, 0, 0))
    assert shown.tolist() == SPECIAL
    assert (labels == IGNORED).all()


def test_a_tokenizer_without_a_mask_is_refused():
    with pytest.raises(ConfigError, match="no mask token"):
        Vocabulary.of(bytelevel())
