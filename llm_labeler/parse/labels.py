"""Labels that stand before a sentence: `Synonymous sentence 1:`, `**Formal:**`, `同义句1：`."""

from __future__ import annotations

import re

from llm_labeler.parse.source import Source

_KIND = (
    r"(?:new|another|possible|generated|rewritten|rephrased|paraphrased|reworded|modified|revised|synonymous|synonym"
    r"|antonymous|antonym|opposite|contrary|contradictory|negated|negative|positive|similar|output|alternative"
    r"|same[- ]meaning|opposite[- ]meaning)"
)
_NAME = (
    r"(?:sentence|synonym|antonym|paraphrase|version|variation|variant|option|alternative|rewrite|rephrasing"
    r"|rewording|opposite|negation|positive|negative|output|statement|text)"
)
_CHINESE = (
    r"(?:第[一二三四五六七八九十\d]{1,3}(?:个?句(?:话|子)?|个|条)|(?:同义|近义|反义|相反|否定|改写|新|生成的?|意思相[同反]的?)?"
    r"(?:句子?|语句|版本|表达|选项|示例|词))"
)
_LABEL = re.compile(
    rf"(?:(?:the |an? )?(?:{_KIND}[ -]){{0,3}}{_NAME}|{_CHINESE}) ?(?:#|no\.? ?)?"
    r"(?:(?P<n>\d{1,3})|(?P<letter>[A-J])|[一二三四五六七八九十])?"
    r" ?(?:\([^()\n]{1,40}\) ?)?(?::(?!\d)|(?<=[\dA-J])(?:[.)]| [-–—])(?= +[^\Wa-z\d_]))",
    re.IGNORECASE,
)
# Whatever is bold and followed by a colon is a label: `**Formal:** …`, `**Formal**: …`.
_BOLD = re.compile(r"(?:\*\*|__)[^*_:\n]{1,60}(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*:)")
_INNER = re.compile(rf"(?:[/|;,.!?][\"”']?|  |\s[-–—]) +(?P<start>{_LABEL.pattern})", re.IGNORECASE)


def label_end(piece: str, source: Source) -> int:
    """Where the sentence begins after its label; 0 if it has none, or the source has such a one too."""
    bare = piece.lstrip("*_# ")
    match = _BOLD.match(piece)
    if match is not None:
        return match.end()
    match = _LABEL.match(bare)
    if match is None or _LABEL.match(source.text):
        return 0
    return len(piece) - len(bare) + match.end()


def inner_label(piece: str, source: Source) -> int:
    """Where a label stands inside a tidy piece, after a sign that divides; 0 if nowhere."""
    match = _INNER.search(piece)
    return 0 if match is None or _LABEL.match(source.text) else match.start("start")
