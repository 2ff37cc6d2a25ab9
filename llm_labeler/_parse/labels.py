"""Labels that stand before a sentence: `Synonymous sentence 1:`, `**Formal:**`, `同义句1：`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from llm_labeler._parse.commentary import REMARK
from llm_labeler._parse.names import role_of
from llm_labeler._parse.source import Source

_KIND = (
    r"(?:new|another|possible|generated|rewritten|rephrased|paraphrased|reworded|modified|revised|synonymous"
    r"|synonym|antonymous|antonym|opposite|contrary|contradictory|negated|negative|positive|similar|output"
    r"|alternative|same[- ]meaning|opposite[- ]meaning)"
)
_NAME = (
    r"(?:sentence|synonym|antonym|paraphrase|version|variation|variant|option|alternative|rewrite|rephrasing"
    r"|rewording|opposite|negation|positive|negative|output|statement|text|a(?=:))"
)
_CHINESE = (
    r"(?:第[一二三四五六七八九十\d]{1,3}(?:个?句(?:话|子)?|个|条)|(?:同义|近义|反义|相反|否定|改写|新|生成的?|意思相[同反]的?)?"
    r"(?:句子?|语句|版本|表达|选项|示例|词))"
)
_LABEL = re.compile(
    rf"(?:(?:the |an? )?(?:{_KIND}[ -]){{0,3}}{_NAME}|{_CHINESE}) ?(?:#|no\.? ?)?"
    r"(?:(?P<n>\d{1,3})|(?P<letter>[A-J])|[一二三四五六七八九十])?"
    r" ?(?:\([^()\n]{1,40}\) ?)?(?::(?!\d)|(?<=[\dA-J])(?:[.)]| [-–—])(?= +(?-i:[^\Wa-z\d_])))",
    re.IGNORECASE,
)
# Whatever is bold and followed by a colon is a label: `**Formal:** …`, `**Formal**: …`, `**Formal** – …`.
_BOLD = re.compile(r"(?:\*\*|__)[^*_:\n]{1,60}(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*(?::|[-–—](?=\s)))")
# A name before a colon, which says of itself that a sentence follows, or how that is said.
_NAMED = re.compile(
    r"(?P<name>[^\W\d][^:\n.!?。;,\"“”「」()=]{0,50}(?:\([^()\n]{1,30}\) ?)?) ?:(?![\d/]) *(?=\S)"
)
_STYLE = re.compile(
    r"(?:(?:more|slightly|very|less|semi|a|an|the|using|in|with) )*(?:formal|informal|casual|colloquial"
    r"|neutral|polite|direct|indirect|simpl|short|long|concise|literal|figurative|poetic|creative|idiom"
    r"|slang|literary|active|passive|inver|reorder|rephras|reword|negat|contra|question|academic"
    r"|professional|friendly|conversational|emphatic|dramatic|descriptive|technical|plain|modern|old"
    r"|emotional|humorous|business|everyday|standard|complex|detailed|elegant|first|second|third|fourth"
    r"|fifth|last|one|two|three|four|five|six|seven|eight|nine|ten|new|changed|modified|rewritten|result|后"
    r"|书面|口语|正式|简洁|委婉|フォーマル|カジュアル|丁寧|formell|umgangssprachlich|satz|gegenteil|umformulierung|oraci|frase"
    r"|opci|versi|sin[óo]nim|ant[óo]nim|phrase|synonyme|antonyme|反対|同義|対義|言い換え|文|例)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|would|could|can|means|have|has|do|does|will|i|we|you|he|she|they)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 5
_ASSIGNMENT = re.compile(
    r"(?:(?:const|let|var|final|string|str|my|auto|public"
    r"|private)\s+){0,3}\$?[A-Za-z_][\w.]{0,40}(?:\[[^\[\]\n]{0,20}\])?"
    r"(?: ?: ?str)? {0,3}:?= {0,3}f?(?=[\"'`“])"
)
_CALL = re.compile(r"[A-Za-z_][\w.]{0,40} ?\( ?f?(?P<string>[\"'`][^\n]{0,2000}[\"'`]) ?\)[;,]?")
_INNER = re.compile(rf"(?:[/|;,.!?→>][\"”']?|  |\s[-–—]) *(?P<start>{_LABEL.pattern})", re.IGNORECASE)


def label_end(piece: str, source: Source, *, any_name: bool = True) -> int:
    """Where the sentence begins after its label; 0 if it has none, or the source has such a one too.

    Args:
        piece: Begins with the label, if it has one.
        source: The sentence asked about.
        any_name: Whether a name that doesn't speak of sentences can be a label too, before a whole sentence.
    """
    bare = piece.lstrip("*_# ")
    if (match := _BOLD.match(piece)) is not None:
        return match.end()
    if (match := _ASSIGNMENT.match(bare)) is not None:
        return len(piece) - len(bare) + match.end()
    match = _LABEL.match(bare) or _named(bare, source, any_name=any_name)
    if match is None or _LABEL.match(source.text):
        return 0
    return len(piece) - len(bare) + match.end()


def _named(bare: str, source: Source, *, any_name: bool) -> re.Match[str] | None:
    match = _NAMED.match(bare)
    if match is None or ":" in source.text or source.is_like(match["name"]):
        return None
    name = match["name"].strip("*_ ")
    if len(name.split()) > _MOST_WORDS or _VERB.search(name):
        return None
    role = role_of(name)
    if role == "sentence" or (_STYLE.match(name) and role != "echo"):
        return match
    if role is not None or not any_name:
        return None
    return match if REMARK.match(name) or _begins_sentence(bare[match.end() :], source) else None


def name_of(line: str) -> str:
    """The name before a colon with which a line begins, in small letters; empty if it begins with none."""
    match = _NAMED.match(line.lstrip("*_#>(-• \t"))
    return (
        ""
        if match is None or len(match["name"].split()) > _MOST_WORDS
        else match["name"].strip("*_ ").lower()
    )


def recurring_names(lines: Iterable[str]) -> frozenset[str]:
    """Names that stand before several lines and name no sentences: `Analysis:` below each of them."""
    counts = Counter(name for line in lines if (name := name_of(line)))
    return frozenset(
        name for name, count in counts.items() if count > 1 and role_of(name) not in ("sentence", "echo")
    )


def _begins_sentence(said: str, source: Source) -> bool:
    """Whether a capital, or a quote, begins a whole sentence: before it stands a name of whatever kind."""
    first = said.lstrip("\"“'‘「*_ ")[:1]
    return not first.islower() and first.isalpha() and source.is_as_long_as(said)


def without_call(piece: str) -> str:
    """What a line of code calls a function with, if that is a string: `print("…")`."""
    match = _CALL.fullmatch(piece)
    return piece if match is None else match["string"]


def names_sentence(piece: str) -> bool:
    """Whether the whole of a piece is the name of a sentence, as headings are: `Sentence 1`, `Option B`."""
    match = _LABEL.fullmatch(f"{piece.strip('*_# :-–—')}:")
    return match is not None and bool(match["n"] or match["letter"])


def inner_label(piece: str, source: Source) -> int:
    """Where a label stands inside a tidy piece, after a sign that divides; 0 if nowhere."""
    match = _INNER.search(piece)
    return 0 if match is None or _LABEL.match(source.text) else match.start("start")
