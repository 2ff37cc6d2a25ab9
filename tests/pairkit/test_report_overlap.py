import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit._report.overlap import ORDERS, add_overlaps, ngrams, overlap, words
from pairkit.progress import Progress

from .report_material import frame, row

texts = st.text(alphabet="ab _0É,.\n", max_size=40)


def test_by_hand() -> None:
    one, other = words("The parser crashes on start"), words("the PARSER crashes at start!")
    # 4 shared of 6 words; "the parser", "parser crashes" of 6 bigrams; "the parser crashes" of 5 trigrams.
    assert overlap(one, other, 1) == pytest.approx(400 / 6)
    assert overlap(one, other, 2) == pytest.approx(200 / 6)
    assert overlap(one, other, 3) == pytest.approx(100 / 5)


def test_texts_too_short_for_an_order_have_no_overlap() -> None:
    assert overlap(["a", "b"], ["a"], 3) is None
    assert overlap(["a", "b", "c"], ["a"], 3) == 0
    assert overlap([], [], 1) is None


def test_repeated_ngrams_count_once() -> None:
    assert ngrams(["a", "a", "a"], 2) == {("a", "a")}
    assert overlap(["a", "a", "a"], ["a", "a"], 2) == 100


@given(texts, texts, st.sampled_from(ORDERS))
def test_symmetric_bounded_and_full_only_for_equal_sets(one: str, other: str, order: int) -> None:
    found = overlap(words(one), words(other), order)
    assert found == overlap(words(other), words(one), order)
    if found is None:
        assert not ngrams(words(one), order)
        assert not ngrams(words(other), order)
    else:
        assert 0 <= found <= 100
        assert (found == 100) == (ngrams(words(one), order) == ngrams(words(other), order))


@settings(max_examples=30)
@given(texts, texts, st.sampled_from(ORDERS))
def test_against_scikit_learn(one: str, other: str, order: int) -> None:
    vectorizer_module = pytest.importorskip("sklearn.feature_extraction.text")
    metrics = pytest.importorskip("sklearn.metrics")
    vectorizer = vectorizer_module.CountVectorizer(
        ngram_range=(order, order), token_pattern=r"\w+", binary=True
    )
    found = overlap(words(one), words(other), order)
    if found is None:
        with pytest.raises(ValueError, match="empty vocabulary"):
            vectorizer.fit_transform([one, other])
        return
    first, second = vectorizer.fit_transform([one, other]).toarray()
    assert found == pytest.approx(100 * metrics.jaccard_score(first, second))


def test_columns_are_added_row_by_row() -> None:
    rows = frame([row(1, 1, text1="a b c", text2="a b c"), row(2, 0, text1="a", text2="b")])
    told: list[Progress] = []
    added = add_overlaps(rows, told.append)
    assert added.select("overlap1", "overlap2", "overlap3").rows() == [(100, 100, 100), (0, None, None)]
    assert added["label"].to_list() == [1, 0]
    assert told[0] == Progress("comparing words", 0, 2)
