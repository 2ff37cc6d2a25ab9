"""What a piece is by its words: an introduction, a note, a refusal, the question said again.

A sentence asked about may itself begin in such a way ("I'm sorry, …", "Let me know …"); then its paraphrases
do too, and that pattern is left out of account.
"""

from __future__ import annotations

from llm_labeler._parse import commentary, phrases
from llm_labeler._parse.labels import names_sentence
from llm_labeler._parse.source import Source


def lead(piece: str, source: Source) -> int:
    """Where the sentences begin in a piece that introduces them first; 0 if it introduces nothing."""
    match = phrases.LEAD.match(piece)
    if match is None or match.end() == 0 or phrases.LEAD.match(source.text):
        return 0
    introduction = match.group()
    if ":" in introduction and phrases.ABOUT_SENTENCES.search(introduction) is None:
        return 0
    return match.end()


def head(piece: str, source: Source) -> int:
    """Where the text begins after a label such as `Output:`; 0 if there is none."""
    match = phrases.HEAD.match(piece)
    return 0 if match is None or phrases.HEAD.match(source.text) else match.end()


def echoes(piece: str, source: Source) -> bool:
    """Whether `piece` says the question again."""
    bare = piece.lstrip("#*_ ")
    match = phrases.ECHO.match(bare)
    if match is not None:
        return phrases.ECHO.match(source.text) is None
    return phrases.PROMPT.match(bare) is not None and phrases.PROMPT.match(source.text) is None


def echo_end(piece: str, source: Source) -> int:
    """Where the answer's label begins in `Input sentence: … Output: …`; 0 if it is none."""
    if not echoes(piece, source):
        return 0
    match = phrases.HEAD_INSIDE.search(piece, max(piece.find(source.text), 0))
    return 0 if match is None else match.start("head")


def opens_turn(piece: str, source: Source) -> bool:
    """Whether `piece` asks a new question, about another sentence than the source."""
    match = phrases.TURN.match(piece.lstrip("#*_ "))
    return match is not None and not source.is_said_by(piece.lstrip("#*_ ")[match.end() :])


def refuses(piece: str, source: Source) -> bool:
    """Whether `piece` declines; what shares its words with the source is a sentence instead."""
    return (
        phrases.REFUSAL.match(piece) is not None
        and not phrases.REFUSAL.match(source.text)
        and not source.is_like(piece)
    )


def _is_placeholder(piece: str, source: Source) -> bool:
    return (
        len(piece) <= 100 and phrases.PLACEHOLDER.fullmatch(piece) is not None and not source.is_like(piece)
    )


def closes(piece: str, source: Source) -> bool:
    """Whether `piece` is a remark after the sentences."""
    bare = piece.lstrip("#*_ ")
    if notes(piece, source):
        return True
    is_closing = phrases.CLOSING.match(bare) is not None and not phrases.CLOSING.match(source.text)
    return is_closing and not source.is_like(bare)


def reasons(piece: str, source: Source) -> bool:
    """Whether `piece` thinks aloud."""
    bare = piece.lstrip("#*_[( ")
    return commentary.REASONING.match(bare) is not None and source.lacks(commentary.REASONING)


def corrects(piece: str, source: Source) -> bool:
    """Whether `piece` takes back what stands before it, as in `Wait, that keeps the meaning`."""
    return commentary.CORRECTION.match(piece.lstrip("#*_[( -")) is not None and source.lacks(
        commentary.CORRECTION
    )


def notes(piece: str, source: Source) -> bool:
    """Whether `piece` is a note and says so: `Note: …`."""
    return phrases.NOTE.match(piece.lstrip("#*_[( ")) is not None and not phrases.NOTE.match(source.text)


def introduces(piece: str, source: Source) -> bool:
    """Whether the whole of `piece` introduces what follows, or is a heading of it."""
    bare = piece.strip("#*_ ")
    if bare.endswith(":") and not source.text.endswith(":"):
        return len(bare) <= 60 or phrases.ABOUT_ANSWERS.search(bare) is not None
    if names_sentence(piece) and not names_sentence(source.text):
        return True
    return phrases.HEADING.match(piece) is not None or lead(bare, source) == len(bare) > 0


def heads_sentences(piece: str) -> bool:
    """Whether an introduction is one to sentences and to nothing else."""
    return phrases.HEADING.match(piece) is not None or phrases.ABOUT_SENTENCES.search(piece) is not None


def aside(piece: str, source: Source, otherwise: str | None) -> str | None:
    """Why a tidy piece is no sentence, by its words; `otherwise` if they don't tell."""
    if refuses(piece, source) or _is_placeholder(piece, source):
        return "refusal"
    if reasons(piece, source):
        return "thinking"
    if echoes(piece, source):
        return "echo"
    if closes(piece, source):
        return "closing_note"
    return "preamble" if introduces(piece, source) else otherwise
