"""Where the main clause of a sentence has its verb, and other questions that rules ask of the codes."""

from __future__ import annotations

import re

from llm_labeler._providers.wordnet.sentence import Sentence, word_set

NOUN_PHRASE = r"D{0,2}(?:R?[Je]|[#gn])*[ns]"
WITH_PHRASES = rf"{NOUN_PHRASE}(?:C{NOUN_PHRASE})?(?:I{NOUN_PHRASE}(?:C{NOUN_PHRASE})?)*"
_FINITE = "MBHOzd"
_SUBORDINATORS = word_set("if because although though unless while when whenever whereas since until")
_PLURAL_SUBJECTS = word_set("we you they i these those who people")
_GROUP = re.compile(r"[MBHOzdv](?:[RN]*[vbHeg])*")


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


def main_start(sentence: Sentence) -> int | None:
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


def is_plural(sentence: Sentence, start: int, end: int) -> bool:
    """Whether a noun phrase is: its head is the last noun before any preposition."""
    codes = sentence.codes[start:end].split("I", 1)[0]
    return "C" in codes or codes.endswith("s")


def has_later_verb(rest: str) -> bool:
    """Whether a finite verb comes before anything that could begin another clause."""
    return bool(re.match(r"[^CSW,.PE]*[MBHOz]", rest))


def _is_finite(sentence: Sentence, place: int, start: int, owed: int) -> bool:
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


def _is_plural_subject(sentence: Sentence, place: int) -> bool:
    """Whether the pronoun before a verb makes it plural."""
    while place > 0 and sentence.codes[place - 1] in "RN":
        place -= 1
    return place > 0 and sentence.low[place - 1] in _PLURAL_SUBJECTS
