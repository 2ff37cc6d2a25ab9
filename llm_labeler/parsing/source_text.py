"""The text that was asked about, and comparisons of its words and script with those of other sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from unicodedata import category, name

from llm_labeler.records import Polarity
from pairkit.base.printable import normalize
from pairkit.similarity import terms


def joined(lines: str) -> str:
    """A pattern that is written in several lines."""
    return "".join(map(str.strip, lines.splitlines()))


ENDED = re.compile(r"[.!?。！？…][\"”’'»」』*_)]*$")
# The last lookbehind keeps a long run from being tried from each of its characters.
STOP = re.compile(
    joined(r"""
    (?<!\bMr)(?<!\bDr)(?<!\bMrs)(?<!\bfig)(?<!\b[A-Za-z])(?<![.!?。])(?<![！？]{2})
    [.!?。！？]++["”’'»」』)]*+(?:\s++(?=[^a-z])|$)
    |[。！？](?!["”’」』)])
""")
)


# Here each character of a script without blanks counts as a word.
UNSPACED = re.compile(f"[{terms.UNSPACED}]")
# Scripts whose share is counted by letters, not by words.
_BY_LETTER = frozenset(["CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"])
# The script of some first words of Unicode names: of "ー", of "々", and of signs such as
# "ʼ".
_SCRIPT_OF_NAME = {
    "HIRAGANA": "KANA",
    "KATAKANA": "KANA",
    "KATAKANA-HIRAGANA": "KANA",
    "IDEOGRAPHIC": "CJK",
    "MODIFIER": None,
}
# From this share on, a text may have a second script, such as English terms.
_SECOND_SCRIPT_SHARE = 0.2
# Texts are translations if the share of a script differs by more than this.
_TRANSLATION_DIFFERENCE = 0.7
_ABBREVIATION_LENGTH = 3  # characters; abbreviations occur in texts of any script
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
_NOT = re.compile(r"\b(?:can(?:not|['’ʼ]t)|won['’ʼ]t|shan['’ʼ]t|(\w+)n['’ʼ]t)\b")
_NOT_WORDS = {"can": "can not", "won": "will not", "sha": "shall not"}
_IGNORED = "PZC"  # Unicode categories: punctuation, separators, control characters
# The ASCII characters of these categories.
_IGNORED_ASCII = re.compile(r"[\x00-\x20\x7f!\"#%&'()*,\-./:;?@\[\\\]_{}]")
# Signs without which a text means something else: "1.5" (but not "1,500"), "-5", "C#".
_MEANINGFUL = re.compile(
    r"(?<=\d)(?:\.|,(?!\d{3}(?!\d)))(?=\d)|(?<!\w)-(?=\d)|(?<=[^\W\d_])#(?!\w)"
)
_ARTICLES = frozenset(("a", "an", "the"))
_ENDING = re.compile(r"(?<=\w\w\w)(?:ing|ied|ies|ed|es|e|y|s)$")
# "colour" and "centre", but not "four" and "street".
_OUR = re.compile(r"(?<=\w\w)our")
_TRE = re.compile(r"tre(?=s?$)")
# "organise", "organisation" and "analyse".
_BRITISH_S = re.compile(r"(?<=i)s(?=[eai])|(?<=y)s(?=e)")


def tidy(piece: str) -> str:
    """Collapse white space."""
    return " ".join(piece.split())


def has_words(piece: str) -> bool:
    """Whether a piece has a letter or a digit."""
    return any(map(str.isalnum, piece))


def size_of(piece: str) -> int:
    """Length in words, or in characters for scripts without spaces."""
    if piece.isascii():
        return len(piece.split())
    spaced, unspaced = UNSPACED.subn(" ", piece)
    return len(spaced.split()) + unspaced


def sentences_of(text: str) -> list[str]:
    """The sentences of a text."""
    ends = [match.end() for match in STOP.finditer(text)]
    pieces = [text[start:end].strip() for start, end in pairwise([0, *ends, len(text)])]
    return list(filter(None, pieces))


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text asked about, and the number and polarity of the requested sentences."""

    text: str
    folded: str
    words: frozenset[str]
    size: int
    width: int  # in sentences
    wanted: int | None
    polarity: Polarity | None

    @classmethod
    def of(
        cls, text: str, wanted: int | None = None, polarity: Polarity | None = None
    ) -> SourceText:
        """Compute the features of a text once."""
        text = tidy(text)
        sizes = (size_of(text), len(sentences_of(text)) or 1)
        return cls(text, fold(text), frozenset(words(text)), *sizes, wanted, polarity)

    def equals(self, piece: str) -> bool:
        """Whether a piece equals this text but for case, spaces and punctuation."""
        is_far_longer = len(piece) >= 3 * len(self.text) + 50
        return self.folded != "" and not is_far_longer and fold(piece) == self.folded

    def resembles(self, piece: str) -> bool:
        """Whether at least half of the words of a piece are in this text."""
        piece_words = {*words(piece[:2000])}
        return bool(piece_words) and 2 * len(piece_words & self.words) >= len(
            piece_words
        )

    def is_as_long_as(self, piece: str) -> bool:
        """Whether a piece is long enough for a rewrite."""
        return 5 * size_of(piece) >= 2 * self.size

    def begins(self, pattern: re.Pattern[str], piece: str) -> re.Match[str] | None:
        """The match at the beginning of a piece, unless this text has one, too."""
        match = pattern.match(piece)
        if match and pattern.match(self.text):
            return None
        return match

    def lacks(self, characters: str | re.Pattern[str]) -> bool:
        """Whether this text has none of these characters or matches."""
        if isinstance(characters, str):
            return set(characters).isdisjoint(self.text)
        return characters.search(self.text) is None


def fold(sentence: str) -> str:
    """A sentence in NFKC without differences that don't change its meaning.

    These are case, white space, control characters and most punctuation.
    """
    return _replace_ignored(normalize("NFKC", sentence).casefold(), "")


def words(sentence: str) -> list[str]:
    """The words of a sentence without case and punctuation.

    Contracted negations are spelled out.
    """
    plain = normalize("NFKC", sentence).casefold()
    plain = _NOT.sub(
        lambda match: _NOT_WORDS.get(match[0][:3], f"{match[1]} not"), plain
    )
    plain = UNSPACED.sub(r" \g<0> ", _APOSTROPHE.sub("", plain))
    return _replace_ignored(plain, " ").split()


def _replace_ignored(text: str, replacement: str) -> str:
    """The text with a replacement of all characters without meaning."""
    meaningful = {match.start() for match in _MEANINGFUL.finditer(text)}
    if text.isascii() and not meaningful:
        return _IGNORED_ASCII.sub(replacement, text)
    return "".join(
        replacement
        if category(character)[0] in _IGNORED and index not in meaningful
        else character
        for index, character in enumerate(text)
    )


def count_differing_words(first: Sequence[str], second: Sequence[str]) -> int:
    """Number of words in only one sentence; a replaced word counts twice."""
    common = Counter(first) & Counter(second)
    return len(first) + len(second) - 2 * common.total()


def order_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """Similarity in [0, 1] of the order of two sentences' words; 0 if a word differs.

    Articles and English endings are ignored.
    """
    left = [stem(word) for word in first if word not in _ARTICLES]
    right = [stem(word) for word in second if word not in _ARTICLES]
    if left == right:
        return 1.0
    if len(left) != len(right) or Counter(left) != Counter(right):
        return 0.0
    return SequenceMatcher(None, left, right).ratio()


def stem(word: str) -> str:
    """A word without English endings; short words and words with digits as they are."""
    if len(word) <= 3 or not word.isalpha():
        return word
    word = _BRITISH_S.sub("z", _TRE.sub("ter", _OUR.sub("or", word)))
    for _ in range(2):  # things, thing; played, play
        word = _ENDING.sub("", word)
    if len(word) > 2 and word[-1] == word[-2]:
        return word[:-1]
    return word


def is_other_script(candidate: str, text: str) -> bool:
    """Whether `candidate` is in another script than `text`."""
    if candidate.isascii() and text.isascii():
        return False  # Latin, or no letters
    of_text = script_shares(text)
    of_candidate = script_shares(candidate)
    if not of_text or not of_candidate:
        return False
    if "KANA" in of_text:  # Japanese, which mixes kana and Chinese characters
        of_text = _with_kana_as_han(of_text)
        of_candidate = _with_kana_as_han(of_candidate)
    main = max(of_text, key=of_text.__getitem__)
    if main not in of_candidate:
        return True
    candidate_main = max(of_candidate, key=of_candidate.__getitem__)
    return (
        candidate_main != main
        and of_text.get(candidate_main, 0.0) < _SECOND_SCRIPT_SHARE
    )


def is_translation(candidate: str, text: str) -> bool:
    """Whether two texts are in different scripts, as translations are."""
    if len(candidate) <= _ABBREVIATION_LENGTH or (
        candidate.isascii() and text.isascii()
    ):
        return False
    of_text = _with_kana_as_han(script_shares(text))
    of_candidate = _with_kana_as_han(script_shares(candidate))
    missing = [
        share - of_candidate.get(script, 0.0) for script, share in of_text.items()
    ]
    return bool(of_candidate) and max(missing, default=0.0) > _TRANSLATION_DIFFERENCE


def _with_kana_as_han(scripts: dict[str, float]) -> dict[str, float]:
    """The shares of scripts, with kana counted as Chinese characters."""
    kana = scripts.pop("KANA", 0.0)
    if kana:
        scripts["CJK"] = scripts.get("CJK", 0.0) + kana
    return scripts


def script_shares(text: str) -> dict[str, float]:
    """Share of each script, by words, or by letters for the scripts in `_BY_LETTER`."""
    counts: Counter[str] = Counter()
    last: str | None = None
    for character in normalize("NFKC", text):
        script = _script(character)
        if script is not None and (script != last or script in _BY_LETTER):
            counts[script] += 1
        # Digits, apostrophes and combining marks don't end a word.
        if script is not None or character.isspace():
            last = script
    total = counts.total()
    return {script: counts[script] / total for script in sorted(counts)}


@lru_cache(maxsize=4096)
def _script(character: str) -> str | None:
    """A letter's script, by the first word of its name; None for other characters."""
    if not character.isalpha():
        return None
    first = name(character, "UNKNOWN").split(" ", 1)[0]
    return _SCRIPT_OF_NAME.get(first, first)
