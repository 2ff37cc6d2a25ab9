"""What a name says about the thing that it names: a key of JSON, a column, a tag, a label, a heading."""

from __future__ import annotations

import re
from typing import Literal

from llm_labeler._records import Polarity

Role = Literal["sentence", "echo", "side"]

_ECHO = re.compile(
    r"(?:the |your |our )?(?:original|input|source|given|prompt|question|query|instruction|initial|reference"
    r"|premise|before|user|system\b|原|输入|问|元の|入力|ausgangs|eingabe|original|entrada|frase original"
    r"|phrase d'origine|phrase originale)",
    re.IGNORECASE,
)
_SIDE = re.compile(
    r"(?:explanation|explain|note|reason|rationale|why|id\b|index|number|numero|no\b|#|nr\b|label|type|kind"
    r"|lang|polarity|score|similarity|confidence|probability|rank|difference|change|comment|remark|title"
    r"|status|error|message|detail|code|model|role|task|thought|thinking|analysis|technique|method|strategy"
    r"|approach|style|tone|register|category|source_|meta|count|total|size|length|date|time|key|word|pattern"
    r"|how\b|what\b|usage|context|translation|pinyin|解释|说明|编号|序号|备注|类型|理由|分析|注|変更|説明|erklärung|hinweis"
    r"|anmerkung|begründung|nota\b|explicaci|remarque|explication)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"(?:sentence|text|output|synonym|antonym|paraphras|rewrit|rephras|reword|result|answer|response|content"
    r"|completion|generat|value|version|variation|variant|alternative|option|opposite|negat|contra|positive"
    r"|negative|candidate|statement|target|after\b|transformed|modified|same|similar|句|同义|近义|反义|文本|输出|结果|内容"
    r"|改写|答案|文\d?$|同義|対義|反対|言い換え|satz|gegenteil|umformulierung|oraci|frase|phrase)",
    re.IGNORECASE,
)
_POSITIVE = re.compile(
    r"synonym|sinónim|sinonim|paraphras|paráfras|rephras|reword|\bsame\b|same[- _]meaning|similar|equivalent"
    r"|\bpositives?\b|gleiche[rn]? bedeutung|umformulier|同义|近义|意思相同|相同意思|同義|同じ意味|言い換え",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"antonym|antónim|opposite|negat(?:ion|ed|ive)|contrar(?:y|ies|i)|contradict|inverse|opuest|opposé"
    r"|gegenteil|gegensätz|反义|相反|否定|反対|対義|反意",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+|#")


def role_of(name: str) -> Role | None:
    """What a name says: the sentence asked about, something beside sentences, a sentence; or nothing."""
    plain = " ".join(_WORDS.findall(name[:80])) if name.isascii() else name.strip(" *_#")[:80]
    if _ECHO.match(plain):
        return "echo"
    if _SIDE.match(plain):
        return "side"
    words = plain.split(" ")
    if len(words) > 1 and _SIDE.match(words[-1]):
        return "side"
    return "sentence" if _SENTENCE.search(plain) else None


def polarity_of(name: str) -> Polarity | None:
    """The polarity that a name or a heading speaks of; None where it is none or both."""
    plain = name[:200].replace("_", " ")
    positive, negative = _POSITIVE.search(plain) is not None, _NEGATIVE.search(plain) is not None
    if positive == negative:
        return None
    return "positive" if positive else "negative"
