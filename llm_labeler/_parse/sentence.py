"""From the text of one item to its sentence: label, arrow, markup, quotes and remark taken off."""

from __future__ import annotations

import re

from llm_labeler._parse import wording
from llm_labeler._parse.damage import is_salad
from llm_labeler._parse.labels import inner_label, label_end, without_call
from llm_labeler._parse.quotes import offered, unquote
from llm_labeler._parse.remarks import without_remarks
from llm_labeler._parse.source import Source, tidy
from llm_labeler._records import Item

_ROUNDS = 4  # of label within quotes within bold …
_ARROW = re.compile(r" ?(?:-{1,2}>|=>|→|⇒|➔|➜) ?")
# What may stand between the sentence asked about and one that was made of it.
_LINK = re.compile(
    r"[\s\"”'’」*_.!?。)]*(?:(?:vs\.?|versus|becomes?|to|into|(?:can|could|may|might|would|is) (?:be "
    r"|become )?(?:\w+ ){0,3}(?:as|to|into)"
    r"|changed to|turns into|变成|改为|[-=–—>→⇒⟶➔➜:|/~≠↔⇔]+)[\s*_]*)+[\"“'‘「]?(?=\S)",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"~~[^~]{1,500}~~ ?")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]{1,2000})(?<=\S)\*(?![\w*])")


def refine(piece: str, source: Source, rounds: int = _ROUNDS, *, is_value: bool = False) -> list[Item]:
    """The items in one piece of an answer: its sentence, and whatever stands with it and is turned down.

    A value of data is the sentence itself, whatever it quotes; a piece of other text may talk of the
    sentence that it quotes.
    """
    said = tidy(piece)
    if not any(character.isalnum() for character in said):
        return [Item(said, "unparsable")] if said else []
    if is_salad(said, source):
        return [Item(said, "unparsable")]
    before, rest = _after_echo(said, source)
    reason = _aside(said, source)
    if reason is not None and not before:
        return [Item(said, reason)]
    return [*([Item(before, "echo")] if before else []), *_refined(rest, said, source, rounds, is_value)]


def _refined(rest: str, said: str, source: Source, rounds: int, is_value: bool) -> list[Item]:
    """The items in a piece that no echo stands before."""
    stretches = None if is_value else offered(rest[label_end(rest, source) :], source)
    if stretches is not None:
        return [item for text, is_quoted in stretches for item in _quoted(text, is_quoted, source)]
    tags, bare, remarks = without_remarks(rest, source)
    sentence = strip_clothes(bare, source)
    if not any(character.isalnum() for character in sentence):
        return [Item(said, "preamble")]  # a label of nothing
    inner = (
        [Item(sentence)]
        if sentence == said or not rounds
        else refine(sentence, source, rounds - 1, is_value=is_value)
    )
    return [
        *(Item(tag, "remark") for tag in tags),
        *inner,
        *(Item(remark, "remark") for remark in remarks),
    ]


def _quoted(text: str, is_quoted: bool, source: Source) -> list[Item]:
    if not is_quoted:
        return [Item(text, "remark")]
    if source.is_said_by(text):
        return [Item(text, "echo")]
    sentence = strip_clothes(text, source)
    return [Item(sentence, _aside(sentence, source))]


def _aside(said: str, source: Source) -> str | None:
    """Why a piece is no sentence, by its words, where one is expected; None if it may be one."""
    reason = wording.aside(said, source, None)
    return None if reason is None or _may_be_sentence(said, reason, source) else reason


def _may_be_sentence(said: str, reason: str, source: Source) -> bool:
    """Whether a piece that begins as an aside does is a sentence where one is expected: "Let me know …"."""
    if reason in ("closing_note", "thinking"):
        return not wording.notes(said, source)
    is_labelled = 0 < label_end(said, source) < len(said)
    return reason == "preamble" and (is_labelled or not wording.heads_sentences(said))


def strip_clothes(said: str, source: Source) -> str:
    """A tidy piece without label, emphasis and enclosing quotes."""
    for _ in range(_ROUNDS):
        bare = without_call(said[label_end(said, source) :])
        bare = unquote(_without_emphasis(bare, source).strip())
        if bare == said:
            break
        said = bare
    return tidy(said)


def _after_echo(said: str, source: Source) -> tuple[str, str]:
    """Both sides of `source -> sentence` or `Original: … / Antonym: …`; no left side if it is neither."""
    end = _source_end(said, source)
    link = _LINK.match(said, end) if end else None
    if link is not None and source.is_as_long_as(said[link.end() :]):
        return said[: link.start()], said[link.end() :]
    match = _ARROW.search(said)
    if match is not None and not _ARROW.search(source.text):
        left, right = said[: match.start()], said[match.end() :]
        if right and wording.echoes(left, source):
            return left, right
    if wording.echoes(said, source) and (start := inner_label(said, source)):
        return said[:start].rstrip(" /|;,"), said[start:]
    return "", said


def _source_end(said: str, source: Source) -> int:
    """Where the sentence asked about ends in a piece that begins with it, or a label and it; else 0."""
    place = said[: 200 + len(source.text)].casefold().find(source.text.rstrip(".!?。").casefold())
    if place < 0 or not source.text:
        return 0
    before = said[:place].rstrip("\"'“‘「*_ ")
    is_label = not before or before.endswith((":", "：")) or not any(c.isalnum() for c in before)
    return place + len(source.text.rstrip(".!?。")) if is_label else 0


def _without_emphasis(said: str, source: Source) -> str:
    if "**" in said and "**" not in source.text:
        said = said.replace("**", "")
    if "~~" in said and "~~" not in source.text:
        said = _STRUCK.sub("", said)
    if said.startswith("__") and "__" not in source.text:
        said = said.replace("__", "")
    if "*" in said and "*" not in source.text:
        said = _EMPHASIS.sub(r"\1", said).strip("* ")
    if len(said) > 2 and said[0] == said[-1] == "_":
        said = said[1:-1]
    return said
