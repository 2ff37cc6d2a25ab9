"""TF-IDF by hand, against scikit-learn, and of texts of which nothing is known."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.tfidf import TfIdf
from pairkit.words import words

TEXTS = ["red boat", "red car red", "blue", "..."]


def test_a_cosine_by_hand() -> None:
    red, rare = 1 + log(5 / 3), 1 + log(5 / 2)
    twice = (1 + log(2)) * red
    by_hand = [red / sqrt(red**2 + rare**2), twice / sqrt(twice**2 + rare**2), 0, 0]
    assert TfIdf(TEXTS).scores("RED") == pytest.approx(by_hand, abs=1e-6)


def test_unknown_words_and_no_words_score_nothing() -> None:
    for text in ("green", "", "!"):
        assert TfIdf(TEXTS).scores(text).tolist() == [0, 0, 0, 0]
    assert TfIdf([]).scores("red").tolist() == []


@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=6), st.text("abc ", max_size=12))
def test_as_scikit_learn_has_it(texts: list[str], query: str) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(words(text) for text in texts):
        return
    theirs = TfidfVectorizer(analyzer=words, sublinear_tf=True)
    matrix = theirs.fit_transform(texts)
    expected = (theirs.transform([query]) @ matrix.T).toarray()[0]
    np.testing.assert_allclose(TfIdf(texts).scores(query), expected, atol=1e-6)
