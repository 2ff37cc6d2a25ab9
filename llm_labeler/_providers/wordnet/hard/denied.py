"""Negations and antonyms: what the rules of opposites find, and which of both it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from llm_labeler._providers.wordnet.annotator import opposites
from llm_labeler._providers.wordnet.grammar import has_later_verb, main_verb
from llm_labeler._providers.wordnet.hard.turned import Turned, turned
from llm_labeler._providers.wordnet.patterns import Table, read_table
from llm_labeler._providers.wordnet.sentence import Change, Edit, Sentence, word_set
from llm_labeler._providers.wordnet.synonyms import in_compound

_NO = word_set("no not never none nobody nothing cannot neither nor without don't doesn't")
_DEGREES = word_set("more less most least")
_POSSIBLE = word_set("may might could")
# What the rules turn now and then that is no opposite there.
_AMISS = word_set("called having click stage iron slow marks scans little alone well long appear appears")


def opposite_changes(sentence: Sentence) -> Iterator[Turned]:
    """Changes that deny a sentence, or put an antonym into it."""
    for change in opposites(sentence):
        edit = change.edits[0]
        if set(sentence.low[edit.start : edit.end]) & _AMISS and not _NO & {*edit.text.split()}:
            continue
        if _is_misread(sentence, edit):
            continue
        if _fits(sentence, edit):
            yield _of_kind(sentence, change)
    yield from _impossible(sentence)
    for change in _table().changes(sentence):
        edit = change.edits[0]
        if not in_compound(sentence, edit) and _fits(sentence, edit):
            yield Turned("antonym", change)


def _is_misread(sentence: Sentence, edit: Edit) -> bool:
    """Whether what is denied may be no verb of the clause: another follows at once, or it is a participle."""
    if sentence.low[edit.start : edit.start + 1] in (("called",), ("be",)):
        return True
    if edit.text.endswith(" no") and sentence.low[edit.end : edit.end + 1] in (("number",), ("lot",)):
        return True  # there are a number of …
    return edit.text.startswith(("do not", "does not", "did not")) and has_later_verb(
        sentence.codes[edit.end :]
    )


def _fits(sentence: Sentence, edit: Edit) -> bool:
    """Whether words may take a place: not beside themselves, nor beside what says the same again."""
    low, start, end = sentence.low, edit.start, edit.end
    if edit.text.lower() in low[max(0, start - 3) : start] + low[end : end + 3]:
        return False  # from mild to mild
    if (low[end : end + 1] == ("(",) and sentence.codes[start] in "JRnse") or low[
        max(0, start - 1) : start
    ] == ("(",):
        return False
    return not (start and low[start - 1] in _DEGREES and end == start + 1 and sentence.codes[start] in "JR")


def _of_kind(sentence: Sentence, change: Change) -> Turned:
    edit = change.edits[0]
    was = {*sentence.low[edit.start : edit.end]}
    negates = bool(_NO & {*edit.text.lower().split()}) != bool(_NO & was)
    if negates and was & _POSSIBLE:
        return Turned("negation", Change(0.0, change.edits))  # what may be may also not be
    return Turned("negation" if negates else "antonym", change)


def _impossible(sentence: Sentence) -> Iterator[Turned]:
    """`may cause` becomes `cannot cause`."""
    place = main_verb(sentence)
    if place is None or sentence.low[place] not in _POSSIBLE or sentence.is_negative or sentence.is_question:
        return
    if "sometimes" in sentence.low:
        return
    also = sentence.low[place + 1 : place + 2] == ("also",)
    if sentence.codes[place + 1 + also : place + 2 + also] in ("v", "b", "H"):
        yield turned("negation", 0.93, Edit(place, place + 1 + also, "cannot"))


@cache
def _table() -> Table:
    return Table(read_table("hard/opposites"))
