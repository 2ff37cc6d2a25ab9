"""A sentence as tokens with codes, and changes of it that leave all else as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from HanTa.HanoverTagger import HanoverTagger

from llm_labeler.clients.wordnet.lexicon import lemmas, with_article_for
from llm_labeler.records import ChangeKind

# The code, and the corpus's tags that it stands for; `,` and `.` are a lesser break and an end, `x` no word.
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
    "n": "NN0 NN1 NP0",  # noun: cell; and whatever has none of these tags
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
_COLLECTIVE = frozenset(("people", "police", "data"))
_LONGEST = 60  # letters the model is shown of a word, as its time grows with their square


def codes(words: tuple[str, ...]) -> str:
    """One letter a token."""
    found: list[str] = []
    tags = _tags(words)
    for word, tag in zip(words, tags, strict=True):
        found.append(_code(word, tag, found[-1] if found else "^"))
    for place, tag in enumerate(tags):
        if tag == "DT0" and "".join(found[place + 1 : place + 2]) not in tuple("JnsDgeR#"):
            found[place] = "P"
    return "".join(found)


def is_name(words: tuple[str, ...], place: int) -> bool:
    """Whether a token is a proper name, also at the beginning, where all words have capitals."""
    return _tags(words)[place] == "NP0"


@lru_cache(maxsize=64)
def _tags(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_tagger().tag_sent([_spoken(word) for word in words], taglevel=0))


def _spoken(word: str) -> str:
    """The part of a word that the model knows: `do` of `don't`, `body` of `body's`."""
    plain = word[:_LONGEST].replace("’", "'")
    if plain.lower() in _WHOLE:
        return _WHOLE[plain.lower()]
    return plain.removesuffix("n't").partition("'")[0] or plain


def _code(word: str, tag: str, before: str) -> str:
    low = word.lower()
    if not any(map(str.isalnum, word)) and word not in "%&":
        return "." if word in ".!?" else ","
    if _NUMBER.fullmatch(low):
        return "#"
    if _FOREIGN.fullmatch(low):
        return "x"
    code = _CODES.get(tag, "n")
    # Where the form of the word says otherwise:
    if code == "s" and not low.endswith("s") and lemmas(low, "n")[:1] == (low,):
        return "n"
    if code == "J" and low.endswith("ing") and before in "BbR" and lemmas(low, "v"):
        return "g"
    return "s" if low in _COLLECTIVE else code


@cache
def _tagger() -> HanoverTagger:
    return HanoverTagger("morphmodel_en.pgz")


_TOKEN = re.compile(r"(?:https?://|www\.)\S+|(?:[A-Za-z]\.){2,}|[^\W_]+(?:[-'’./_@][^\W_]+)*|\S")
_ARTICLE = re.compile(r"\b([Aa]n?)(\s+)$")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, to be looked up in."""
    return frozenset(text.split())


_NEGATORS = word_set(
    """
    not no never cannot neither nor none nothing nobody without hardly barely rarely seldom few little
    unable unless until lack lacks nowhere dont doesnt didnt isnt arent cant wont
    """
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Tokens `start` to before `end` are replaced by `text`."""

    start: int
    end: int
    text: str

    def meets(self, other: Edit) -> bool:
        """Whether both touch the same tokens."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that together make one candidate, and how sure the rule is that it says what it should."""

    confidence: float  # in [0, 1]
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence whose words are known."""

    text: str

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where words, numbers and marks stand."""
        return tuple(match.span() for match in _TOKEN.finditer(self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens as they are written."""
        return tuple(self.text[start:end] for start, end in self.spans)

    @cached_property
    def low(self) -> tuple[str, ...]:
        """The words in small letters, with straight apostrophes."""
        return tuple(word.lower().replace("’", "'") for word in self.words)

    @cached_property
    def codes(self) -> str:
        """What each token is, one letter each; see `tagging`."""
        return codes(self.words)

    @property
    def is_question(self) -> bool:
        """Whether it asks, or is a heading that does."""
        return "?" in self.words or self.codes[:1] in ("W", "M", "O") or self.low[:1] in (("is",), ("are",))

    @property
    def is_negative(self) -> bool:
        """Whether it says no anywhere."""
        return any(word in _NEGATORS or word.endswith("n't") for word in self.low)

    def slice(self, start: int, end: int) -> str:
        """The text of tokens `start` to before `end`, as it stands."""
        return self.text[self.spans[start][0] : self.spans[end - 1][1]] if start < end else ""

    def opening(self, end: int) -> str:
        """The text before token `end`, fit to stand within a sentence."""
        text = self.slice(0, end)
        keeps = is_name(self.words, 0) or (self.low[0] != "a" and not text[1:2].islower())
        return text if keeps else text[:1].lower() + text[1:]

    def apply(self, edits: Iterable[Edit]) -> str:
        """The text with edits made, and with capitals and articles that fit what they brought."""
        text = self.text
        for edit in sorted(edits, key=lambda each: -each.start):
            start = self.spans[edit.start][0] if edit.start < len(self.spans) else len(text)
            end = self.spans[edit.end - 1][1] if edit.end > edit.start else start
            before, after, new = text[:start], text[end:], edit.text
            if edit.start < edit.end and self.words[edit.start][:1].isupper() and self.low[edit.start] != "i":
                new = capital(new)
            if not new:  # a word is left out, and one of the blanks around it
                before, after = before.rstrip(), after if after[:1] in ".,;:?!)" else " " + after.lstrip()
            elif edit.end == edit.start:
                new += " "
            text = _fit_article(before, new) + new + after
        text = text.strip()
        return capital(text) if self.text[:1].isupper() else text


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _fit_article(before: str, new: str) -> str:
    article = _ARTICLE.search(before)
    word = re.match(r"[\w-]+", new)
    if not article or not word:
        return before
    fit = with_article_for(word[0])
    return before[: article.start()] + (fit.capitalize() if article[1][0] == "A" else fit) + article[2]


NOUN_PHRASE = r"D{0,2}(?:R?[Je]|[#gn])*[ns]"
WITH_PHRASES = rf"{NOUN_PHRASE}(?:C{NOUN_PHRASE})?(?:I{NOUN_PHRASE}(?:C{NOUN_PHRASE})?)*"
_FINITE = "MBHOzd"
_SUBORDINATORS = word_set("if because although though unless while when whenever whereas since until")
_PLURAL_SUBJECTS = word_set("we you they i these those who people")
_GROUP = re.compile(r"[MBHOzdv](?:[RN]*[vbHeg])*")


def main_verb(sentence: TaggedSentence) -> int | None:
    """The place of the finite verb of the main clause; None where it can't be told."""
    codes, start, owed = sentence.codes, main_start(sentence), 0
    if start is None:
        return None
    place = start
    while place < len(codes):
        code = codes[place]
        if code in "WS" and place > start:
            if code == "S" and owed == 0 and sentence.low[place] != "that":
                return None
            owed += 1
        elif code in ".x" or sentence.words[place] in ":;-":
            return None
        elif code in "vb" and place == start:
            return place  # an imperative
        elif _is_finite(sentence, place, start, owed):
            if not owed:
                return place
            owed -= 1
            group = _GROUP.match(codes, place)  # may not have been seen
            place = group.end() - 1 if group else place
        place += 1
    return None


def main_start(sentence: TaggedSentence) -> int | None:
    """Where the main clause begins: past an opening clause, adverb or phrase that a comma ends."""
    codes, low = sentence.codes, sentence.low
    if not codes:
        return None
    if low[0] in _SUBORDINATORS or codes[0] == "S":
        commas = (place for place in range(1, len(low) - 1) if low[place] == ",")
        ends = (
            at + 1 for at in commas if codes[at + 1] in "DPnsJEv#R" and re.search("[MBHOzdv]", codes[:at])
        )
        return next(ends, None)
    if codes[0] in "RICT":
        comma = low.index(",") if "," in low else None
        if comma is not None and comma < 14 and not re.search("[MBHOz]", codes[:comma]):
            return comma + 1
        return 0 if codes[0] in "RC" else None
    return 0


def is_plural(sentence: TaggedSentence, start: int, end: int) -> bool:
    """Whether a noun phrase is: its head is the last noun before any preposition."""
    codes = sentence.codes[start:end].split("I", 1)[0]
    return "C" in codes or codes.endswith("s")


def has_later_verb(rest: str) -> bool:
    """Whether a finite verb comes before anything that could begin another clause."""
    return bool(re.match(r"[^CSW,.PE]*[MBHOz]", rest))


def _is_finite(sentence: TaggedSentence, place: int, start: int, owed: int) -> bool:
    codes, code = sentence.codes, sentence.codes[place]
    before = codes[start:place].rstrip("RN")[-1:]
    is_noun = not owed and has_later_verb(codes[place + 1 :])
    if code in "HO" and before in ("M", "T"):
        return False
    if code == "d":
        # or a shortened relative clause: the protein produced from this gene is …
        return (
            before in ("n", "s", "P", "W") and not is_noun and sentence.low[place + 1 : place + 2] != ("by",)
        )
    if code == "v":
        if is_noun or (before == "P" and codes[:place].rstrip("RN")[-2:-1] in ("v", "z", "d", "g")):
            return False  # help you relax
        return before in ("s", "W") or (before == "P" and _is_plural_subject(sentence, place))
    return code in _FINITE


def _is_plural_subject(sentence: TaggedSentence, place: int) -> bool:
    """Whether the pronoun before a verb makes it plural."""
    while place > 0 and sentence.codes[place - 1] in "RN":
        place -= 1
    return place > 0 and sentence.low[place - 1] in _PLURAL_SUBJECTS


class MeaningChange(NamedTuple):
    """A change that gives a sentence another meaning."""

    kind: ChangeKind
    change: Change


def meaning_change(kind: ChangeKind, sure: float, *edits: Edit) -> MeaningChange:
    """A change of some edits."""
    return MeaningChange(kind, Change(sure, edits))
