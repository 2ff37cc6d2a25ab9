"""The lexicon, word forms, the codes of words and the tables of phrases."""

from __future__ import annotations

from importlib import resources

import pytest

from llm_labeler.clients.wordnet.lexicon import (
    antonyms,
    degree,
    inflected_verb,
    is_compound,
    is_prefixed,
    lemmas,
    plural,
    synonyms,
    with_article_for,
)
from llm_labeler.clients.wordnet.sentence import Edit, TaggedSentence
from llm_labeler.clients.wordnet.substitutions import PhraseTable, parse, read_table
from tests.llm_labeler.derive_lexicon import DEBIAN, derive

# The lexicon


@pytest.mark.slow  # the words below are a small twin
@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="no wordnet-base here")
def test_the_lexicon_is_what_wordnet_says() -> None:
    shipped = resources.files("llm_labeler.clients.wordnet") / "lexicon.tsv"
    assert shipped.read_text(encoding="utf-8") == derive()


def test_synonyms_are_words_in_use_of_the_same_dominant_sense() -> None:
    assert synonyms("baby", "n")[0] == "infant"
    assert synonyms("bank", "n") == ()  # of a river, or for money
    assert synonyms("person", "n") == ()  # mortal and individual are not said for it


def test_antonyms_are_direct_and_in_the_dominant_sense_of_both() -> None:
    assert antonyms("large", "a") == ("small",)
    assert antonyms("big", "a") == ()  # small is the opposite of large
    assert antonyms("publicly", "r") == ("privately",)
    assert antonyms("light", "a") == ()  # not heavy, or not dark


def test_compounds_and_prefixes() -> None:
    assert is_compound(("big", "bang"))
    assert not is_compound(("big", "house"))
    assert is_prefixed("incorrect")
    assert not is_prefixed("important")


# Forms


@pytest.mark.parametrize(
    ("form", "pos", "wanted"),
    [
        ("children", "n", ("child",)),
        ("doctors", "n", ("doctor",)),
        ("mice", "n", ("mouse",)),
        ("rises", "v", ("rise",)),
        ("rose", "v", ("rise",)),
        ("permitted", "v", ("permit",)),
        ("writing", "v", ("write",)),
        ("stopped", "v", ("stop",)),
        ("larger", "a", ("large",)),
        ("happiest", "a", ("happy",)),
        ("bus", "n", ("bus",)),
        ("zyzzle", "n", ()),
    ],
)
def test_lemmas(form: str, pos: str, wanted: tuple[str, ...]) -> None:
    assert lemmas(form, pos) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("cause", ("cause", "causes", "caused", "caused", "causing")),
        ("carry", ("carry", "carries", "carried", "carried", "carrying")),
        ("stop", ("stop", "stops", "stopped", "stopped", "stopping")),
        ("permit", ("permit", "permits", "permitted", "permitted", "permitting")),
        ("visit", ("visit", "visits", "visited", "visited", "visiting")),
        ("write", ("write", "writes", "wrote", "written", "writing")),
        ("take", ("take", "takes", "took", "taken", "taking")),
        ("die", ("die", "dies", "died", "died", "dying")),
        ("see", ("see", "sees", "saw", "seen", "seeing")),
        ("go away", ("go away", "goes away", "went away", "gone away", "going away")),
    ],
)
def test_verbs_take_the_form_that_stood_there(verb: str, forms: tuple[str, ...]) -> None:
    assert tuple(inflected_verb(verb, code) for code in "vzdeg") == forms


def test_plurals_and_third_persons() -> None:
    nouns = (
        "doctor",
        "baby",
        "day",
        "child",
        "box",
        "diagnosis",
        "white blood cell",
        "infection",
        "person",
        "virus",
    )
    assert [plural(noun) for noun in nouns] == [
        "doctors", "babies", "days", "children", "boxes", "diagnoses", "white blood cells", "infections",
        "people", "viruses",
    ]  # fmt: skip
    assert [plural(noun) for noun in ("octopus", "sheep", "policeman")] == ["octopuses", "sheep", "policemen"]


def test_degrees() -> None:
    words = ("large", "small", "big", "happy", "good", "dangerous", "easy")
    assert [degree(word, "er") for word in words] == [
        "larger", "smaller", "bigger", "happier", "better", "more dangerous", "easier",
    ]  # fmt: skip
    assert [degree(word, "est") for word in ("large", "difficult")] == ["largest", "most difficult"]


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("doctor", "a"), ("infant", "an"), ("hour", "an"), ("unit", "a"), ("uniform", "a"), ("unhappy", "an"),
        ("useful", "a"), ("one-time", "a"), ("European", "a"), ("MRI", "an"), ("CT", "a"), ("8", "an"),
        ("11", "an"), ("unimportant", "an"),
    ],
)  # fmt: skip
def test_articles(word: str, article: str) -> None:
    assert with_article_for(word) == article


# Codes and edits


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("The doctor often treats a child.", "DnRzDn."),
        ("Pain causes fever.", "nzn."),  # and not: several causes
        ("The causes are rare.", "DsBJ."),
        ("They saw that the river rises.", "PdSDnz."),
        ("A book which was written by 3 doctors", "DnWBeI#s"),
        ("To open it, see www.example.org/a", "TvP,vx"),
    ],
)
def test_codes(text: str, codes: str) -> None:
    assert TaggedSentence(text).codes == codes


def test_edits_fit_capitals_articles_and_blanks() -> None:
    sentence = TaggedSentence("Often a doctor is not late.")
    assert (
        sentence.apply([Edit(0, 1, "usually"), Edit(2, 3, "old doctor")])
        == "Usually an old doctor is not late."
    )
    assert sentence.apply([Edit(4, 5, "")]) == "Often a doctor is late."
    assert sentence.apply([Edit(0, 1, "")]) == "A doctor is not late."
    assert Edit(0, 2, "").overlaps(Edit(1, 3, ""))
    assert not Edit(0, 1, "").overlaps(Edit(1, 2, ""))


def test_the_language_of_tables() -> None:
    table = PhraseTable("""
# a remark
@ 0.9
go* away > disappear*; about {#} > around {}
^ to {v} > in order to {}
@ 0.8
doctor+ <> physician+; high {nI.} <> low {}
""")

    def changed(text: str) -> list[tuple[str, float]]:
        sentence = TaggedSentence(text)
        return [(sentence.apply(change.edits), change.confidence) for change in table.changes(sentence)]

    assert changed("Pain and physicians went away.") == [
        ("Pain and doctors went away.", 0.8),
        ("Pain and physicians disappeared.", 0.9),
    ]
    assert changed("See about 3 doctors.") == [
        ("See around 3 doctors.", 0.9),
        ("See about 3 physicians.", 0.8),
    ]
    assert changed("To sleep, try to read.") == [("In order to sleep, try to read.", 0.9)]
    # What a token must be holds for the way back too.
    assert changed("The price is high.") == [("The price is low.", 0.8)]
    assert changed("The price is low.") == [("The price is high.", 0.8)]
    assert changed("He aimed low they say.") == []


@pytest.mark.parametrize("name", ["paraphrases", "contrasts", "questions"])
def test_the_tables_rules_say_something_else_and_are_sure(name: str) -> None:
    rules = list(parse(read_table(name)))
    assert len(rules) > 30
    assert all(left != right and 0.75 <= sure < 1 for left, right, sure in rules)
    assert all(left.count("{") == right.count("{") for left, right, _ in rules)
