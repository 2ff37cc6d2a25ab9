"""Turns that a model makes up after its answer, and the prompt said again before it: told by their words."""

from __future__ import annotations

import re

from llm_labeler._parse import phrases, wording
from llm_labeler._parse.commentary import FINAL
from llm_labeler._parse.names import role_of
from llm_labeler._parse.source import Source, tidy

_CLOTHES = "#*_>- \t|"
_ROLE = r"(?:human|user|instructions?|system|customer|person [ab12]|student|teacher|用户|人类|ユーザー)"
# A line of a new turn, whatever it says.
_TURN = re.compile(
    rf"(?:#{{1,6}} ?)?(?:{_ROLE} ?:|#{{2,6}} ?(?:input|output|assistant|response|{_ROLE})\b"
    r"|(?:user|assistant|model|human)$"
    r"|(?:next |another |new )?(?:example|round|exercise|task|problem|query|prompt) ?#?\d{0,3} ?[:.]?$"
    r"|(?:example|exercise|round|question|q|input|query) ?#?\d{1,3} ?[:.]"
    r"|(?:now|next|ok|okay|great|alright)?,? ?(?:let['’]s |let us |can you |please |could you |now )(?:do"
    r"|try|move|continue|give|generate|write|rewrite)\b"
    r"[^\n]{0,60}\b(?:another|next|same|more|following|again)\b"
    r"|(?:next|another|new) (?:input|sentence|example|one)\b[^\n]{0,30}:)",
    re.IGNORECASE,
)
# What asks about another sentence, if that isn't the one asked about.
_ASKS = re.compile(
    r"(?:the )?(?:(?:given |new |next )?input(?: (?:sentence|text|statement))?|question|q|query|prompt"
    r"|task|original(?: (?:sentence|text|statement|version))?|source(?: sentence)?|given(?: sentence)?"
    r"|sentence|text|premise|输入(?:句子|文本|语句)?|原句|问题?|句子|入力(?:文)?|eingabe|entrada)"
    r" ?:[*_]*\s*(?P<about>.*)",
    re.IGNORECASE,
)
_BARE_NAME = re.compile(r"(?:sentence|text|句子) ?:", re.IGNORECASE)
_ANSWERS = re.compile(r"(?:[\w -]{2,40}|[^\W\d]{2,12}) ?:[*_]*(?:\s|$)")
# The same behind a sentence in its own line; there only names that no sentence has.
_WITHIN = re.compile(
    r"(?<=[.!?。\"”'’)\]])\s*(?=(?:###? ?\w+|(?:new |next )?[Ii]nput(?: sentence| text)? ?:|USER ?:|User ?:"
    r"|Human ?:|HUMAN ?:|ASSISTANT ?:|Assistant ?:|### |Question ?:|Q ?: |用户:|输入句子?:"
    r"|You are a highly smart))|(?<=[.!?。\"”])(?:assistant|user|model)[ \t]*(?=\n|$)"
)


def split_turns(text: str, source: Source) -> tuple[str, str, str]:
    """The question said again, the answer, and whatever the model made up behind it."""
    before, answer = _without_question(text, source)
    end = _end(answer, source)
    return before, answer[:end], answer[end:]


def split_draft(text: str, source: Source) -> tuple[str, str]:
    """What was thought aloud before a final answer that is announced as one, and that answer."""
    last = None
    for match in FINAL.finditer(text):
        if (
            match.start()
            and source.lacks(FINAL)
            and any(c.isalnum() for c in text[match.end() : match.end() + 200])
        ):
            last = match
    return ("", text) if last is None else (text[: last.start()], text[last.end() :])


def _without_question(text: str, source: Source) -> tuple[str, str]:
    """A prompt or a question in front goes, up to the label of the answer to it."""
    bare = text.lstrip()
    first = tidy(bare.partition("\n")[0][:2000])
    if not (wording.echoes(first, source) or (_TURN.match(first.lstrip(_CLOTHES)) and source.lacks(_TURN))):
        return "", text
    for match in re.finditer(r"(?:^[#*_ \t>]*|(?<=[\s.。\"”]))(?=\S)", bare, re.MULTILINE):
        if match.start() and (head := phrases.HEAD.match(bare, match.end())):
            return bare[: match.start()], bare[head.end() :]
    return "", text


def _end(text: str, source: Source) -> int:
    """Where the answer ends and a made-up turn begins."""
    has_sentence, place = False, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line[:2000].strip(_CLOTHES)
        if has_sentence and bare and _opens(bare, lines[number + 1 : number + 3], source):
            return place
        if (match := _WITHIN.search(line)) is not None and match.start() and source.lacks(_WITHIN):
            rest = line[match.end() : match.end() + 400]
            has_sentence = has_sentence or _is_content(line[: match.start()], source)
            if has_sentence and not _is_about_source(rest, source):
                return place + match.start()
        has_sentence = has_sentence or _is_content(line, source)
        place += len(line) + 1
    return len(text)


def _is_content(line: str, source: Source) -> bool:
    said = tidy(line[:2000].strip(_CLOTHES))
    if not any(c.isalpha() for c in said) or source.is_said_by(said):
        return False
    if source.is_said_by(said.partition(":")[2]):
        return False
    return wording.aside(said, source, None) is None and _ASKS.match(said) is None


def _leads(answers: re.Match[str], about: str, source: Source) -> bool:
    """Whether the label below `Sentence: …` is that of an answer to it."""
    role = role_of(answers.group())
    return role == "sentence" or (role is None and not source.is_like(about))


def _is_about_source(said: str, source: Source) -> bool:
    match = _ASKS.match(said)
    about = tidy(match["about"]) if match else ""
    return bool(about) and (source.is_said_by(about) or about.casefold().startswith(source.text.casefold()))


def _opens(bare: str, following: list[str], source: Source) -> bool:
    if phrases.PROMPT.match(bare) and source.lacks(phrases.PROMPT):
        return True
    if _TURN.match(bare) and source.lacks(_TURN):
        return True
    match = _ASKS.match(bare)
    if match is None or _ASKS.match(source.text) is not None:
        return False
    about = tidy(match["about"]).strip("\"'“”「」*_ ")
    if _BARE_NAME.match(bare):
        # `Sentence: …` may as well be the label of an answer.
        after = next((line.strip(_CLOTHES) for line in following if line.strip()), "")
        answers = _ANSWERS.match(after)
        return (
            bool(about)
            and answers is not None
            and not source.is_said_by(about)
            and _leads(answers, about, source)
        )
    return not about or not (source.is_said_by(about) or source.text.casefold() in about.casefold())
