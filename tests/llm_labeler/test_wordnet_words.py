"""The rules' lexicon, articles, codes and tables."""

from importlib import resources

import pytest

from benchmarks.derive_lexicon import DEBIAN, derive
from llm_labeler.clients.wordnet.annotator import candidates
from llm_labeler.clients.wordnet.substitutions import PhraseTable, parse, read_table
from llm_labeler.clients.wordnet.tagged_sentence import TaggedSentence
from llm_labeler.clients.wordnet.wordnet_lexicon import with_article_for
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import each_line, parametrize


@pytest.mark.slow  # the words below are a short version
@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="no wordnet-base here")
def test_the_lexicon_follows_from_wordnet():
    shipped = resources.files("llm_labeler.clients.wordnet") / "lexicon.tsv"
    assert shipped.read_text() == derive()


@each_line("""
    word, article
        doctor | a
        infant | an
        hour | an
        unit | a
        uniform | a
        unhappy | an
        useful | a
        one-time | a
        European | a
        MRI | an
        CT | a
        8 | an
        11 | an
        unimportant | an
    """)  # fmt: skip
def test_articles(word, article):
    assert with_article_for(word) == article


def test_the_syntax_of_tables():
    table = PhraseTable("""
# a remark
@ 0.9
go* away > disappear*; about {#} > around {}
^ to {v} > in order to {}
@ 0.8
doctor+ <> physician+; high {nI.} <> low {}
""")

    def changed(text):
        sentence = TaggedSentence(text)
        return [
            (sentence.apply(change.edits), change.confidence)
            for change in table.changes(sentence)
        ]

    assert changed("Pain and physicians went away.") == [
        ("Pain and doctors went away.", 0.8),
        ("Pain and physicians disappeared.", 0.9),
    ]
    about_3 = [("See around 3 doctors.", 0.9), ("See about 3 physicians.", 0.8)]
    assert changed("See about 3 doctors.") == about_3
    assert changed("To sleep, try to read.") == [
        ("In order to sleep, try to read.", 0.9)
    ]
    # The condition on a token holds in the reverse direction, too.
    assert changed("The price is high.") == [("The price is low.", 0.8)]
    assert changed("The price is low.") == [("The price is high.", 0.8)]
    assert changed("He aimed low they say.") == []


@parametrize("name", ["paraphrases", "contrasts", "questions"])
def test_the_rules_of_the_tables_are_valid(name):
    rules = list(parse(read_table(name)))
    assert len(rules) > 30
    assert all(left != right and 0.75 <= sure < 1 for left, right, sure in rules)
    assert all(left.count("{") == right.count("{") for left, right, _ in rules)


LONG_WORDS = [("", "a", ""), ("", "1", "@a"), ("http://", "a/", ""), ("", "a-", "")]


@parametrize("before, unit, after", LONG_WORDS)
def test_a_long_word_takes_linear_time(before, unit, after):
    """The tagger is quadratic in the length of a word."""
    text = repeated(unit, f"My doctor said {before}", f"{after} is good.")
    assert candidates(text(65_536), "positive", 9)[0].startswith("My physician said")
    assert_linear(lambda long: candidates(long, "positive", 9), text)


def test_a_long_list_takes_linear_time():
    assert_linear(
        lambda text: candidates(text, "positive", 9),
        repeated("the old doctor often sleeps "),
    )
