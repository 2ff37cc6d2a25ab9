"""Where the main clause of a sentence has its verb, and other questions that rules ask of the codes."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.files import WordNet
from llm_labeler._providers.wordnet.morphology import lemmas
from llm_labeler._providers.wordnet.sentence import Sentence
from llm_labeler._providers.wordnet.words import CLOSED, SUBORDINATORS, word_set

FINITE = "MBHOzd"
NOUN_PHRASE = r"D{0,2}(?:R?[Je]|[#gn])*[ns]"
WITH_PHRASES = rf"{NOUN_PHRASE}(?:C{NOUN_PHRASE})?(?:I{NOUN_PHRASE}(?:C{NOUN_PHRASE})?)*"
_PLURAL_SUBJECTS = word_set("we you they i these those who people")
_PUT_OFF = word_set("only just even all both either merely")


def main_verb(sentence: Sentence) -> int | None:
    """The place of the finite verb of the main clause; None where it can't be told.

    An opening clause that begins with a subordinator ends at its comma. A relative pronoun owes one verb
    before the main one may come.
    """
    codes, start, owed = sentence.codes, main_start(sentence), 0
    if start is None:
        return None
    place = start
    while place < len(codes):
        code = codes[place]
        if code in "W" and place > start:
            owed += 1
        elif code == "S" and place > start:
            if owed == 0 and sentence.low[place] != "that":
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
            place = _end_of_group(codes, place)
        place += 1
    return None


def main_start(sentence: Sentence) -> int | None:
    """Where the main clause begins: past an opening clause, adverb or phrase that a comma ends."""
    codes, low = sentence.codes, sentence.low
    if not codes:
        return None
    if low[0] in SUBORDINATORS or codes[0] == "S":
        for place in range(1, len(low) - 1):
            if (
                low[place] == ","
                and codes[place + 1] in "DPnsJEv#R"
                and re.search("[MBHOzdv]", codes[:place])
            ):
                return place + 1
        return None
    if codes[0] in "RICT":
        comma = low.index(",") if "," in low else None
        if comma is not None and comma < 14 and not re.search("[MBHOz]", codes[:comma]):
            return comma + 1
        return 0 if codes[0] in "RC" else None
    return 0


def is_plural_subject(sentence: Sentence, place: int) -> bool | None:
    """Whether the word before a verb makes it plural; None where that word is no subject."""
    while place > 0 and sentence.codes[place - 1] == "R":
        place -= 1
    if place == 0:
        return None
    code, word = sentence.codes[place - 1], sentence.low[place - 1]
    if code in "Pns":
        return code == "s" or word in _PLURAL_SUBJECTS
    return None


def is_narrowed(sentence: Sentence, verb: int) -> bool:
    """Whether what follows a verb limits it, so that `not` would mean something else: is only, are all."""
    return any(word in _PUT_OFF for word in sentence.low[verb + 1 : verb + 3])


def uncapitalised(wordnet: WordNet, sentence: Sentence, end: int) -> str:
    """The text before token `end`, fit to stand within a sentence."""
    word = sentence.words[0]
    low = word.lower()
    known = low in CLOSED and low != "i"
    if not known and word[1:].islower():
        known = any(
            any(name == lemma for name in wordnet.synset(pos, wordnet.senses(lemma, pos)[0].offset).words)
            for pos in ("n", "v", "a", "r")
            for lemma in lemmas(wordnet, low, pos)
            if wordnet.knows(lemma, pos)
        )
    text = sentence.slice(0, end)
    return text[:1].lower() + text[1:] if known else text


def _is_finite(sentence: Sentence, place: int, start: int, owed: int) -> bool:
    codes, code = sentence.codes, sentence.codes[place]
    before = codes[start:place].rstrip("RN")[-1:]
    if code in "HO" and before in ("M", "T"):
        return False
    if code == "d":
        return before in ("n", "s", "P", "W") and not (
            # a shortened relative clause: the protein produced from this gene is …
            sentence.low[place + 1 : place + 2] == ("by",)
            or (not owed and has_later_verb(codes[place + 1 :]))
        )
    if code == "v":
        if before == "P" and codes[:place].rstrip("RN")[-2:-1] in ("v", "z", "d", "g"):
            return False  # help you relax
        if not owed and has_later_verb(codes[place + 1 :]):
            return False  # a noun after all
        plural = before == "s" or (
            before in ("P", "W") and (is_plural_subject(sentence, place) or before == "W")
        )
        return bool(plural)
    return code in FINITE


def has_later_verb(rest: str) -> bool:
    """Whether a finite verb comes before anything that could begin another clause."""
    return bool(re.match(r"[^CSW,.PE]*[MBHOz]", rest))


def _end_of_group(codes: str, place: int) -> int:
    """The last token of a group of verbs: may not have been seen."""
    match = re.compile(r"[MBHOzdv](?:[RN]*[vbHeg])*").match(codes, place)
    return match.end() - 1 if match else place
