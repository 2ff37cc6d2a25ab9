"""Tag the tokens of a sentence with one-letter codes, find its main verb, and apply edits to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from HanTa.HanoverTagger import HanoverTagger

from llm_labeler.clients.wordnet.wordnet_lexicon import Words, lemmas, with_article_for


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


# Codes with the tags of the corpus. Further codes: `,` and `.` for punctuation, `x` for non-words.
_TAGS = {
    "D": "AT0 DPS DT0",  # determiner, possessive, quantifier before a noun: the, its, many
    "P": "PNP PNI PNX",  # pronoun: it, they, someone; also DT0 with no noun after it
    "E": "EX0",  # there, that something is
    "I": "PRP PRF",  # preposition: of, during
    "C": "CJC",  # coordination: and, or, but
    "S": "CJS CJT",  # subordination: if, because
    "W": "PNQ AVQ DTQ",  # relative or question word: who, which
    "T": "TO0",  # to, before a verb
    "M": "VM0",  # modal: may, cannot
    "B": "VBB VBZ VBD",  # to be; finite
    "b": "VBI VBN VBG",  # to be; not finite
    "H": "VHB VHZ VHD VHI VHN VHG",  # to have
    "O": "VDB VDZ VDD",  # to do; finite
    "N": "XX0",  # not
    "R": "AV0 AVP",  # adverb: often
    "J": "AJ0 AJC AJS ORD",  # adjective: severe
    "#": "CRD",  # number: 12, three
    "n": "NN0 NN1 NP0",  # noun: cell; also the default
    "s": "NN2",  # plural noun: cells
    "v": "VVB VVI VDI",  # verb, base form: cause
    "z": "VVZ",  # third person: causes
    "d": "VVD",  # past: began
    "e": "VVN VDN",  # participle: begun
    "g": "VVG VDG",  # participle in -ing
}
_CODES = {tag: code for code, tags in _TAGS.items() for tag in tags.split()}
_NUMBER = re.compile(r"[.,/%]*\d[\d.,/%-]*|[a-z]*\d[\w-]*")
_FOREIGN = re.compile(r".*(?:@|://|www\.|\w/\w).*")
_WHOLE = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall"}
_COLLECTIVE = word_set("people police data")
_MAX_LETTERS = 60  # of a word, as the tagger takes quadratic time
_TOKEN = re.compile(
    r"(?:https?://|www\.)\S+|(?:[A-Za-z]\.){2,}|[^\W_]+(?:[-'’./_@][^\W_]+)*|\S"
)
# A capital A after a word is part of a name: plan A, type-A.
_ARTICLE = re.compile(r"(?<!-)\b(an?|(?<!\w )An?)(\s+)$")
NOUN_PHRASE = r"D{0,2}(?:R?[Je]|[#gn])*[ns]"
WITH_PHRASES = (
    rf"{NOUN_PHRASE}(?:C{NOUN_PHRASE})?(?:I{NOUN_PHRASE}(?:C{NOUN_PHRASE})?)*"
)
# It matches all of "may not have been seen".
_VERB_GROUP = re.compile(r"[MBHOzdv](?:[RN]*[vbHeg])*")

# Groups of codes.
_FINITE = "MBHOzd"  # verbs
_FINITE_NOT_PAST = "MBHOz"
_AFTER_A_DETERMINER = "JnsDgeR#"
_STARTS_A_CLAUSE = "DPnsJEv#R"
_SUBJECTS = ("n", "s", "P", "W")  # before a verb
_OBJECTS = ("vP", "zP", "dP", "gP")  # with their verb: "help you relax"
_LONGEST_INTRODUCTION = 14  # tokens

_NEGATORS = word_set(
    """
    not no never cannot neither nor none nothing nobody without hardly barely rarely seldom few little
    unable unless until lack lacks nowhere dont doesnt didnt isnt arent cant wont
    """
)
_SUBORDINATORS = word_set(
    "if because although though unless while when whenever whereas since until"
)
_PLURAL_SUBJECTS = word_set("we you they i these those who people")


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replaces the tokens from `start` to before `end` by `text`."""

    start: int
    end: int
    text: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both replace a common token."""
        return self.start < other.end and other.start < self.end


Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that make one candidate, and the confidence in it."""

    confidence: float  # in [0, 1]
    edits: Edits

    @property
    def first(self) -> Edit:
        """The first edit, which most changes have alone."""
        return self.edits[0]


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence with its tokens and their codes."""

    text: str

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each token."""
        return tuple(match.span() for match in _TOKEN.finditer(self.text))

    @cached_property
    def words(self) -> Words:
        """The tokens as written."""
        return tuple(self.text[start:end] for start, end in self.spans)

    @cached_property
    def low(self) -> Words:
        """The tokens in lower case, with straight apostrophes."""
        return tuple(word.lower().replace("’", "'") for word in self.words)

    @cached_property
    def codes(self) -> str:
        """One code per token, see `_TAGS`."""
        tags = _tags(self.words)
        letters = []
        before = "^"
        for word, tag in zip(self.words, tags, strict=True):
            before = _code(word, tag, before)
            letters.append(before)

        # "This" and "all" without a noun are pronouns.
        following = [*letters[1:], "."]
        for index, (tag, after) in enumerate(zip(tags, following, strict=True)):
            if tag == "DT0" and after not in _AFTER_A_DETERMINER:
                letters[index] = "P"
        return "".join(letters)

    @property
    def is_question(self) -> bool:
        """Whether it is a question, also as a heading."""
        asks = self.codes.startswith(("W", "M", "O")) or "?" in self.words
        return asks or self.word_at(0) in ("is", "are")

    def word_at(self, index: int) -> str:
        """The lower-case token at an index; empty outside of the sentence."""
        return self.low[index] if 0 <= index < len(self.low) else ""

    def code_at(self, index: int) -> str:
        """The code of the token at an index; empty outside of the sentence."""
        return self.codes[index] if 0 <= index < len(self.codes) else ""

    @property
    def is_negative(self) -> bool:
        """Whether it says no anywhere."""
        return any(word in _NEGATORS or word.endswith("n't") for word in self.low)

    def slice(self, start: int, end: int) -> str:
        """The text of tokens `start` to before `end`."""
        if start >= end:
            return ""
        first, _ = self.spans[start]
        _, last = self.spans[end - 1]
        return self.text[first:last]

    def opening(self, end: int) -> str:
        """The text before token `end`, in lower case unless it begins with a name."""
        text = self.slice(0, end)
        first_tag, *_ = _tags(self.words)
        is_lower = text[1:2].islower() or self.low[0] == "a"
        if first_tag == "NP0" or not is_lower:
            return text
        return text[:1].lower() + text[1:]

    def apply(self, edits: Iterable[Edit]) -> str:
        """Apply edits, and adapt capitals and articles."""
        text = self.text
        # From the last to the first, so that earlier spans stay valid.
        for edit in sorted(edits, reverse=True):
            text = self._apply(edit, text)
        text = text.strip()
        return capital(text) if self.text[:1].isupper() else text

    def _apply(self, edit: Edit, text: str) -> str:
        start, _ = self.spans[edit.start]
        end = start
        new = edit.text
        if edit.start == edit.end:
            new += " "
        else:
            _, end = self.spans[edit.end - 1]
            if self.words[edit.start][:1].isupper() and self.low[edit.start] != "i":
                new = capital(new)
        before = text[:start]
        after = text[end:]
        if not new:  # a word is dropped with one of the spaces around it
            before = before.rstrip()
            if after[:1] not in ".,;:?!)":
                after = " " + after.lstrip()
        return _fit_article(before, new) + new + after


def capital(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]


def _fit_article(before: str, new: str) -> str:
    """Adapt an article at the end of a text to the new text after it."""
    article = _ARTICLE.search(before)
    word = re.match(r"[\w-]+", new)
    if not article or not word:
        return before
    fitting = with_article_for(word[0])
    if article[1].istitle():
        fitting = fitting.capitalize()
    return before[: article.start()] + fitting + article[2]


@lru_cache(maxsize=64)
def _tags(words: Words) -> Words:
    return tuple(_tagger().tag_sent([_base(word) for word in words], taglevel=0))


def _base(word: str) -> str:
    """The part of a word that the tagger knows: `do` of `don't`, `body` of `body's`."""
    plain = word[:_MAX_LETTERS].replace("’", "'")
    stem, _, _ = plain.removesuffix("n't").partition("'")
    return _WHOLE.get(plain.lower()) or stem or plain


def _code(word: str, tag: str, before: str) -> str:
    """The code of a word, from its tag, its form and the code before it."""
    low = word.lower()
    if not any(map(str.isalnum, word)) and word not in "%&":
        return "." if word in ".!?" else ","
    if _NUMBER.fullmatch(low):
        return "#"
    if _FOREIGN.fullmatch(low):
        return "x"
    code = _CODES.get(tag, "n")
    # Correct the tagger by the form of the word.
    if code == "s" and not low.endswith("s") and lemmas(low, "n")[:1] == (low,):
        return "n"
    if code == "J" and low.endswith("ing") and before in "BbR" and lemmas(low, "v"):
        return "g"
    return "s" if low in _COLLECTIVE else code


@cache
def _tagger() -> HanoverTagger:
    return HanoverTagger("morphmodel_en.pgz")


def main_verb(sentence: TaggedSentence) -> int | None:
    """Index of the finite verb of the main clause; None if unknown."""
    start = main_start(sentence)
    if start is None:
        return None
    codes = sentence.codes
    open_clauses = 0
    index = start
    while index < len(codes):
        code = codes[index]
        if code in "WS" and index > start:
            if code == "S" and not open_clauses and sentence.low[index] != "that":
                return None
            open_clauses += 1
        elif code in ".x" or sentence.words[index] in ":;-":
            return None
        elif code in "vb" and index == start:
            return index  # an imperative
        elif _is_finite(sentence, index, start, open_clauses):
            if not open_clauses:
                return index
            open_clauses -= 1
            if group := _VERB_GROUP.match(codes, index):
                index = group.end()
                continue
        index += 1
    return None


def main_start(sentence: TaggedSentence) -> int | None:
    """Start of the main clause, after an introductory clause, adverb or phrase with a comma."""
    codes = sentence.codes
    low = sentence.low
    first = codes[0]

    if first == "S" or low[0] in _SUBORDINATORS:
        for index in range(2, len(low)):
            after_comma = low[index - 1] == "," and codes[index] in _STARTS_A_CLAUSE
            if after_comma and not set(codes[: index - 1]).isdisjoint(_FINITE + "v"):
                return index
        return None

    if first in "RICT":
        introduction = low[:_LONGEST_INTRODUCTION]
        if "," in introduction:
            comma = introduction.index(",")
            if set(codes[:comma]).isdisjoint(_FINITE_NOT_PAST):
                return comma + 1
        return 0 if first in "RC" else None

    return 0


def is_plural(sentence: TaggedSentence, start: int, end: int) -> bool:
    """Whether a noun phrase is plural, by its last noun before a preposition."""
    codes = sentence.codes[start:end].split("I", 1)[0]
    return "C" in codes or codes.endswith("s")


def has_later_verb(rest: str) -> bool:
    """Whether a finite verb follows in the same clause."""
    return bool(re.match(r"[^CSW,.PE]*[MBHOz]", rest))


def _is_finite(
    sentence: TaggedSentence, index: int, start: int, open_clauses: int
) -> bool:
    codes = sentence.codes
    code = codes[index]
    before = codes[start:index].rstrip("RN")[-1:]
    if code in "HO" and before in ("M", "T"):
        return False
    if code not in "dv":
        return code in _FINITE
    if not open_clauses and has_later_verb(codes[index + 1 :]):
        return False  # the word may be a noun
    if code == "d":
        # Not in a reduced relative clause: "the protein produced by this gene is …".
        return before in _SUBJECTS and sentence.word_at(index + 1) != "by"
    if before == "P":
        up_to_subject = codes[:index].rstrip("RN")
        subject = sentence.low[len(up_to_subject) - 1]
        return subject in _PLURAL_SUBJECTS and not up_to_subject.endswith(_OBJECTS)
    return before in ("s", "W")
