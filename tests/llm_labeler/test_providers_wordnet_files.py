"""WordNet's files, word forms and the codes of words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llm_labeler._providers.wordnet.files import DEBIAN, WordNet, find_folder
from llm_labeler._providers.wordnet.lexicon import antonyms, is_compound, main_sense, synonyms
from llm_labeler._providers.wordnet.morphology import (
    degree,
    inflected_verb,
    lemmas,
    plural,
    third_person,
    with_article_for,
)
from llm_labeler._providers.wordnet.patterns import Table
from llm_labeler._providers.wordnet.sentence import Edit, Sentence, tokens
from llm_labeler._providers.wordnet.tagging import Tagger
from pairkit.errors import ConfigError, DataError
from tests.llm_labeler.wordnet_files import write_wordnet


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory: pytest.TempPathFactory) -> WordNet:
    return WordNet(write_wordnet(tmp_path_factory.mktemp("wordnet") / "dict"))


def read(wordnet: WordNet, text: str) -> Sentence:
    spans = tuple(tokens(text))
    words = tuple(text[start:end] for start, end in spans)
    return Sentence(text, spans, words, Tagger(wordnet).codes(words))


# Files


def test_senses_stand_in_order_with_their_counts(wordnet: WordNet) -> None:
    first, second = wordnet.senses("bank", "n")
    assert (first.count, second.count, wordnet.count("bank", "n")) == (20, 15, 35)
    assert wordnet.synset("n", second.offset).words == ("bank", "depository")
    assert (
        wordnet.synset("n", wordnet.senses("white blood cell", "n")[0].offset).words[0] == "white blood cell"
    )
    assert wordnet.senses("bank", "v") == ()
    assert wordnet.knows("white blood cell", "n")


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "dict")
    (folder / "data.adv").unlink()
    with pytest.raises(ConfigError, match=r"no data\.adv.*apt-get install wordnet-base"):
        WordNet(folder)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("data.noun", "doctor 0 physician", "doctor 0 0 physician"),  # every later offset is off by two
        ("data.noun", " 02 doctor", " zz doctor"),
        ("index.noun", "doctor n 1", "doctor n x"),
        ("cntlist.rev", "doctor%1:00:00:: 1 75", "doctor%1:00:00:: one 75"),
        ("cntlist.rev", "doctor%1:", "doctor%9:"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, old: str, new: str) -> None:
    folder = write_wordnet(tmp_path / "dict")
    text = (folder / name).read_text()
    assert text.count(old) == 1
    (folder / name).write_text(text.replace(old, new))
    with pytest.raises(DataError, match=rf"{name}: damaged .*install wordnet-base again"):
        [main_sense(WordNet(folder), word, "n") for word in ("doctor", "person")]


def test_a_cut_file_is_damaged(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "dict")
    (folder / "data.noun").write_text("")
    with pytest.raises(DataError, match="no synset at byte"):
        main_sense(WordNet(folder), "doctor", "n")


def test_the_folder_is_configured_or_told_or_debians(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORDNET_DIR", raising=False)
    assert find_folder(None) == DEBIAN
    monkeypatch.setenv("WORDNET_DIR", str(tmp_path))
    assert find_folder(None) == tmp_path
    assert find_folder(tmp_path / "own") == tmp_path / "own"


# Senses


def test_only_a_dominant_sense_counts(wordnet: WordNet) -> None:
    assert main_sense(wordnet, "bank", "n") is None  # 20 to 15
    found = main_sense(wordnet, "doctor", "n")
    assert found is not None
    assert found.words == ("doctor", "physician")
    assert main_sense(wordnet, "nothing at all", "n") is None


def test_synonyms_are_in_use_and_share_the_dominant_sense(wordnet: WordNet) -> None:
    assert list(synonyms(wordnet, "doctor", "n")) == ["physician"]
    assert list(synonyms(wordnet, "physician", "n")) == ["doctor"]
    assert list(synonyms(wordnet, "depository", "n")) == []  # its synset is not the bank's main sense
    assert list(synonyms(wordnet, "person", "n")) == []  # mortal and individual are not said for it


def test_antonyms_are_direct_and_in_the_dominant_sense_of_both(wordnet: WordNet) -> None:
    assert list(antonyms(wordnet, "large", "a")) == ["small"]
    assert list(antonyms(wordnet, "small", "a")) == ["large"]
    assert list(antonyms(wordnet, "big", "a")) == []  # the pointer is large's
    assert list(antonyms(wordnet, "slowly", "r")) == ["quickly"]
    assert is_compound(wordnet, ("white", "blood", "cell"))


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
        ("bus", "n", ()),
    ],
)
def test_lemmas(wordnet: WordNet, form: str, pos: str, wanted: tuple[str, ...]) -> None:
    assert lemmas(wordnet, form, pos) == wanted  # type: ignore[arg-type]


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
def test_verbs_take_the_form_that_stood_there(wordnet: WordNet, verb: str, forms: tuple[str, ...]) -> None:
    assert tuple(inflected_verb(wordnet, verb, code) for code in "vzdeg") == forms


def test_a_verb_that_is_irregular_in_an_unknown_way_is_left(wordnet: WordNet, tmp_path: Path) -> None:
    folder = tmp_path / "dict"
    shutil.copytree(wordnet.folder, folder)
    with (folder / "verb.exc").open("a") as file:
        file.write("smote smite\n")
    other = WordNet(folder)
    assert inflected_verb(other, "smite", "d") is None
    assert inflected_verb(other, "smite", "z") == "smites"


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
    assert [plural(noun) for noun in ("octopus", "medium", "cup of tea")] == [None, None, None]
    assert [third_person(verb) for verb in ("have", "try", "play", "fix", "go")] == [
        "has",
        "tries",
        "plays",
        "fixes",
        "goes",
    ]


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
def test_codes(wordnet: WordNet, text: str, codes: str) -> None:
    assert read(wordnet, text).codes == codes


def test_edits_fit_capitals_articles_and_blanks(wordnet: WordNet) -> None:
    sentence = read(wordnet, "Often a doctor is not late.")
    assert (
        sentence.apply([Edit(0, 1, "usually"), Edit(2, 3, "old doctor")])
        == "Usually an old doctor is not late."
    )
    assert sentence.apply([Edit(4, 5, "")]) == "Often a doctor is late."
    assert sentence.apply([Edit(0, 1, "")]) == "A doctor is not late."
    assert Edit(0, 2, "").meets(Edit(1, 3, ""))
    assert not Edit(0, 1, "").meets(Edit(1, 2, ""))


def test_the_language_of_tables(wordnet: WordNet) -> None:
    table = Table("""
        go* away > disappear*
        doctor+ <> physician+ @ 0.8
        about {#} > around {}
        ^ to {v} > in order to {}
    """)

    def changed(text: str) -> list[tuple[str, float]]:
        sentence = read(wordnet, text)
        return [
            (sentence.apply(change.edits), change.confidence) for change in table.changes(wordnet, sentence)
        ]

    assert changed("Pain and physicians went away.") == [
        ("Pain and doctors went away.", 0.8),
        ("Pain and physicians disappeared.", 0.9),
    ]
    assert changed("See about 3 doctors.") == [
        ("See around 3 doctors.", 0.9),
        ("See about 3 physicians.", 0.8),
    ]
    assert changed("To sleep, try to read.") == [("In order to sleep, try to read.", 0.9)]
