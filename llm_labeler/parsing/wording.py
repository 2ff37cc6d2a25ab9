"""Recognise headings, names, introductions, remarks and refusals by their words."""

from __future__ import annotations

import re

from llm_labeler.parsing.phrases import (
    ABOUT,
    CLOSING,
    COUNTED,
    ECHO,
    ECHO_NAME,
    LABEL,
    LEAD,
    NEGATIVE,
    NOTE,
    NOTHING,
    POSITIVE,
    REFUSAL,
    SENTENCE_NAME,
    SIDE_NAME,
    THINKS,
)
from llm_labeler.parsing.source_text import STOP, SourceText, has_words, size_of
from llm_labeler.records import Polarity

COLONS = (":", "：")
_MAX_HEADING_WORDS = 12


def why_no_sentence(
    piece: str, source: SourceText, *, in_list: bool = False
) -> str | None:
    """The reason why a piece is not a sentence, by its words; None if it may be one."""
    bare = piece.lstrip("#*_>[(（ ")
    if NOTHING.fullmatch(piece[:120]):
        return "refusal" if has_words(piece) else "unparsable"
    if source.begins(REFUSAL, bare) and not source.resembles(piece):
        return "refusal"
    if source.begins(ECHO, bare) or source.equals(bare.strip("\"'“”*_ ")):
        return "echo"
    if source.begins(NOTE, bare):
        return "closing_note"
    if in_list:
        return None
    if source.begins(THINKS, bare):
        return "thinking"
    if source.begins(CLOSING, bare) and not source.resembles(piece):
        return "closing_note"
    return "preamble" if is_heading(piece, source) else None


def is_heading(piece: str, source: SourceText) -> bool:
    """Whether a piece is a heading or an introduction."""
    bare = piece.strip("#*_ ")
    if bare.endswith(COLONS) and not source.text.endswith(COLONS):
        return size_of(bare) <= _MAX_HEADING_WORDS or ABOUT.search(bare) is not None
    if re.match(r"#{1,6} ", piece):
        return True
    if re.fullmatch(r"\*\*[^*]+\*\*", piece) and not source.is_as_long_as(bare):
        return True
    is_introduction = bare != "" and lead_end(bare, source) == len(bare)
    return is_introduction or LABEL.fullmatch(f"{bare}:") is not None


def names_answer(line: str) -> bool:
    """Whether a line, or a sentence in it, begins with a label such as `Synonyms:`."""
    starts = [0, *(stop.end() for stop in STOP.finditer(line))]
    labels = filter(None, (LABEL.match(line, start) for start in starts))
    return any(polarity_of(label.group()) for label in labels)


def lead_end(piece: str, source: SourceText) -> int:
    """End index of the introduction at the beginning of a piece; 0 without one."""
    if LABEL.match(piece) or COUNTED.match(piece):
        return 0
    lead = source.begins(LEAD, piece)
    if lead is None:
        return 0
    intro = lead["intro"]
    if intro is None:
        return lead.end()
    stop = STOP.search(intro)
    if stop and _may_be_rewrite(intro[: stop.end()], source):
        return 0  # `The man plays. (Synonym used: plays)`
    return lead.end() if ABOUT.search(lead.group()) else 0


def _may_be_rewrite(sentence: str, source: SourceText) -> bool:
    if ABOUT.search(sentence) or sentence.lower().startswith(("here", "below", "i")):
        return False
    return source.resembles(sentence) or source.is_as_long_as(sentence)


def side_of(name: str) -> str | None:
    """The reason to drop the value of a JSON key or a column.

    "" if the value is a sentence, None if that is unknown.
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", name[:80]).strip() or name[:80]
    if ECHO_NAME.match(plain):
        return "echo"
    if SIDE_NAME.match(plain):
        return "side_field"
    return "" if SENTENCE_NAME.search(plain) else None


def polarity_of(name: str) -> Polarity | None:
    """The polarity that a name or heading states; None for neither or both."""
    is_positive = POSITIVE.search(name[:200]) is not None
    is_negative = NEGATIVE.search(name[:200]) is not None
    if is_positive == is_negative:
        return None
    return "positive" if is_positive else "negative"
