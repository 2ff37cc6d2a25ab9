"""How models begin what is no sentence, in English and Chinese: patterns for the beginning of a piece."""

from __future__ import annotations

import re


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


def compiled(*alternatives: str) -> re.Pattern[str]:
    """One pattern of several, without regard to case; `^` and `$` are those of lines."""
    return re.compile(_any(*alternatives), re.IGNORECASE | re.MULTILINE)


# What a heading is about, and, stricter, what an introduction before a sentence is about.
ABOUT_ANSWERS = compiled(
    "sentence|synonym|antonym|paraphras|rephras|rewrit|reword|version|variation|alternative|opposite|meaning",
    "output|result|example|option|possib|statement|response|answer|negat|list|json|here (?:you|they)|follow",
    "句|义词|结果|改写|示例|例子|表达|版本|如下|以下|義|文|言い換え",
    "s[äa]tze?\\b|umformulier|bedeutung|oraci[oó]n|frases?\\b|sin[oó]nim|ant[oó]nim|phrases?\\b|synonyme"
    "|antonyme",
)
ABOUT_SENTENCES = compiled(
    "sentences?\\b|synonym|antonym|paraphras|rephras|rewrit|reword|(?:opposite|same)[- ]meaning|opposite of",
    r"(?:the|an?) opposite|(?:version|variation|alternative)s?\b|here (?:you|they|are|is)|here['’]s",
    "句|义词|改写|如下|以下|義|以下|言い換え|次の",
    "s[äa]tze?\\b|umformulier|oraci[oó]n|frases?\\b|sin[oó]nim|ant[oó]nim|phrases?\\b",
)

_INTERJECTION = _any(
    "sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|great|no problem|got it|with pleasure",
    "my pleasure|i['’]d be (?:happy|glad) to(?: help)?|happy to help|yes|definitely|understood",
    "好的|当然(?:可以)?|没问题|可以的?|明白了?|もちろん(?:です)?|はい|承知(?:いたし|し)ました|わかりました",
    "natürlich|gerne?|klar|sicher|¡?claro(?: que sí)?|por supuesto|con gusto|bien sûr|certainement"
    "|d['’]accord|volontiers",
)
_OPENER = _any(
    "here(?:['’]s| is| are)|here,|here you|below|the |following|these are|this is|as requested|based on",
    "(?:an?|one|another) |(?:same|opposite)[- ]meaning|antonym|(?:my|your|some|two|four|six|ten|several) ",
    "instead of|rather than|you (?:can|could|might|may)|hier |folgende|zwei |drei |aquí |voici"
    "|a continuación|estas? ",
    "以下に|次の|こちら|もちろん",
    "i['’](?:ve|ll)|i (?:have|will|can)|let me|for the|some|sentences?\\b|synonym|antonym|possible|generated",
    r"\d{1,3} |three |five |以下|下面|下列|这里|这是|根据|您好|你好|我|为|对于|同义|反义|生成|输出|可能",
)
_UP_TO_COLON = r"(?:[^:\n]|(?<=\d):(?=\d\d)){0,400}?:(?!\d\d)"
LEAD = compiled(
    rf"[¡¿]?{_INTERJECTION}\b(?![-\w])[!.,;~。、😊🙂👍]*\s*(?:(?=\S){_OPENER}{_UP_TO_COLON}|$|(?<=[!.。~])\s*"
    rf"|(?<=[!.。~]\s))",
    rf"[¡¿]?{_OPENER}{_UP_TO_COLON}",
)
# A heading of Markdown, a line of `#!/bin/sh`, `#+TITLE:` or a comment of code.
HEADING = re.compile(r"#{1,6} |#!/|#\+\w|// ")
# What stands where a sentence is missing.
_NOTHING = _any(
    r"n/?a|none|null|nil|tbd|same as (?:above|before)|无|没有了?",
    r"(?:no|not)\s(?:\w+\s){0,3}(?:possible|applicable|available|left)",
    r"no\s(?:further|more|other|additional)\s[\w\s-]{0,60}",
)
PLACEHOLDER = re.compile(rf"[\[(<*_\-\s]*{_NOTHING}[\])>*_.\-!\s]*", re.IGNORECASE)

_SENTENCES = "(?:sentence|paraphrase|antonym|synonym|version|variation|option|alternative)s?"
# A note says what it is; other closing remarks are looked for outside of lists only.
NOTE = compiled(
    r"\(?(?:please )?note:|\(?(?:key |brief |short |additional )?(?:note|explanation|disclaimer|remark"
    r"|comment|tip|reason(?:ing)?|rationale|why|analysis|change(?:s made)?|difference|meaning|translation"
    r"|technique|method|strategy|approach|tone|style|register|context|usage|justification|breakdown"
    r"|similarity|score|confidence|type)s?(?: \d{1,2})? ?:",
    "(?:注意|注|说明|解释|备注|理由|原因|分析|变化|翻译|拼音|説明|解説|補足|変更点|ポイント) ?:",
    "(?:hinweis|erklärung|anmerkung|begründung|notas?|explicaci[oó]n|remarques?|explication)s? ?:",
)
CLOSING = compiled(
    r"\(?(?:please )?note(?: that|,)|please (?:let me know|keep in mind)|let me know\b|feel free\b",
    "i hope (?:this|these|that|you find)|hope (?:this|these|that) help|thank you for",
    "(?:i['’]m )?happy to help",
    "if you (?:need|have|would like|want|['’]d like|require) (?:me|any|more|further|additional|other|to)",
    "is there anything|would you like (?:me|more)|do you (?:want|need) (?:me|more|any)",
    rf"(?:in )?(?:all |each )?(?:of )?(?:these|the above) (?:\w+ )?{_SENTENCES}\b|each {_SENTENCES}\b",
    "it['’]s (?:worth|important to)|as you can see|keep in mind|remember that|in general,|overall,"
    "|enjoy\\b|good luck|cheers",
    "would you|shall i|should i|do let me|have a (?:great|nice|good)|you['’]re welcome|thanks?\\b"
    "|this code|the (?:code|list|above)\\b",
    "ich hoffe|lass mich|wenn du|falls (?:du|sie)|bei (?:weiteren )?fragen|¡?espero|si necesitas|avísame"
    "|n['’]hésitez|j['’]espère|si vous",
    "お役に立て|何か(?:他に|ご)|ご参考|他に|必要(?:でしたら|があれば)|いかが",
    "希望(?:这|以上|对|能)|如果(?:您|你)(?:需要|有|还|想)|如有|如需|请注意|这些句子|这些同义|这些反义",
    "以上(?:是|就是|句子)|请告诉我|请让我知道|请问(?:您|你)(?:还|需要|想)|祝(?:您|你)",
)

_SORRY = _any(
    "i(?:['’]m| am) (?:very |so |really |truly )?(?:sorry|afraid)|(?:i |my |my sincere )?apologi(?:es|[sz]e)",
    "sorry|unfortunately|很抱歉|非常抱歉|抱歉|对不起|很遗憾|不好意思",
)
_CANNOT = _any(
    r"\bi (?:can['’]?t|cannot|can not|couldn['’]t|could not|won['’]t|will not|must|decline)",
    r"\bi(?: am|['’]m) (?:not able|unable|not comfortable|not allowed)",
    r"\bi (?:don['’]t|do not) (?:feel|have|understand)",
    "无法|不能|不会|没有办法|没办法|不便|不太明白|不明白|不理解",
)
_TASK = _any(
    "generat|provid|creat|produc|assist|help|fulfil|complet|compl(?:y|ies)|answer|respond|continu|engag"
    "|discuss",
    "rewrit|paraphras|request|sentence|content|prompt|input",
    "生成|提供|回答|满足|协助|帮助|完成|处理|讨论|继续|给出|改写|您的|你的|这个|该",
)
_MAKE = _any(
    "generat|provid|creat|produc|assist|fulfil|compl|rewrit|paraphras",
    "生成|提供|回答|满足|协助|帮助|完成|给出|改写",
)
_WHAT = _any(
    "sentence|synonym|antonym|request|content|paraphras|with (?:that|this)|句|请求|内容|要求|问题|信息"
)
_AI = r"(?:ai|artificial intelligence|language model|人工智能|大?语言模型|智能助手)"
REFUSAL = compiled(
    rf"{_SORRY}[^\n]{{0,80}}?{_CANNOT}[^\n]{{0,60}}?{_TASK}",
    rf"{_SORRY}[^\n]{{0,80}}?(?:the (?:input|given|provided|sentence you|text you)|as an ai|作为)",
    rf"{_SORRY}[^\n]{{0,80}}?your (?:request|question|message|input)",
    rf"我?{_CANNOT}[^\n]{{0,20}}?{_MAKE}[^\n]{{0,60}}?{_WHAT}",
    rf"as an? (?:\w+ )?{_AI}\b|i(?:['’]m| am) (?:just )?an? (?:\w+ )?{_AI}\b",
    rf"作为(?:一个|一名|一款)?\s*{_AI}|我是(?:一个|一名)?(?:名为|{_AI})",
    r"(?:please|could you(?: please)?|can you(?: please)?) (?:provide|give|share|specify)[^\n]{0,30}"
    "(?:sentence|input|text (?:you|to))",
    r"(?:could|can|would) you (?:please )?(?:clarify|specify|tell me|let me know)\b|please clarify\b"
    r"|what (?:do|did|exactly do) you (?:mean|want)",
    r"it (?:seems|looks like|appears)[^\n]{0,60}(?:input|sentence|prompt|message)[^\n]{0,60}"
    "(?:missing|incomplete|unclear|not|empty|cut off)",
    "请(?:您)?提供|您(?:似乎|好像)?没有提供",
)

# The sentence asked about, said again; a turn's label that brings another sentence is one the model made up.
_TURN_NAME = _any(
    "input(?: (?:sentence|text|statement))?|user|human|question|instructions?|task|prompt|query|q",
    "输入(?:句子|文本|语句)?|用户|问题?|指令|人类|入力(?:文)?|ユーザー"
    "|eingabe(?:satz)?|benutzer|entrada|usuario|oración de entrada",
)
_GIVEN = _any(
    "(?:the )?(?:original|source|given|provided|initial)(?: (?:input|sentence|text|statement|version|one))?",
    "原始?(?:句子?|文|语句)|给定(?:的)?句子?|元の文|original(?:satz)?|ausgangssatz|(?:oración|frase) original"
    "|phrase (?:d['’]origine|originale)",
)
TURN = compiled(rf"{_TURN_NAME} ?:", r"\[?round \d+\]?")
ECHO = compiled(rf"(?:{_GIVEN}|{_TURN_NAME}) ?:\s*")
PROMPT = compiled(r"you are a (?:highly smart|helpful assistant)\b|你是一个(?:非常|高度)?(?:聪明|智能)")

# `Output:` and the like, which say nothing and are taken off.
HEAD = compiled(
    r"(?:outputs?(?: sentences?)?|responses?|(?:final )?answers?|assistant|ai|chatgpt|bot|gpt|model|results?"
    r"|输出(?:句子)?|回答|答案?|结果|助手|出力|答え|ausgabe|antwort|salida|respuesta|réponse) ?:[*_]*\s*"
)
HEAD_INSIDE = compiled(r"[\s.。\"”](?P<head>(?:output|response|answer|assistant|输出|回答|答案?|助手) ?:)")
