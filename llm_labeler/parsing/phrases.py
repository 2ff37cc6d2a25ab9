"""Recognise headings, labels, remarks and refusals by patterns, in English first and then in other languages.

A pattern is ignored if the text to rewrite begins in the same way ("I'm sorry, …", "Let me know …"). Above each
pattern is what it finds.
"""

from __future__ import annotations

import re
from typing import Literal

from llm_labeler.parsing.source_text import (
    STOP,
    SourceText,
    has_words,
    joined,
    size_of,
    words,
)
from llm_labeler.records import Polarity

COLONS = (":", "：")
_MAX_HEADING_WORDS = 12
_QUOTE = re.compile('["“”「」]')
# Simplified characters of the patterns, each with its traditional one.
_CHINESE = (
    "当當没沒问問题題这這里裡据據为為对對于於义義词詞写寫换換达達输輸结結给給户戶个個"
    "书書语語简簡洁潔条條选選项項话話说說释釋备備译譯请請诉訴无無会會办辦学學满滿协協"
    "帮幫处處讨討论論遗遺内內让讓应應该該编編号號类類"
)
_BOTH_SCRIPTS = {ord(pair[0]): f"[{pair}]" for pair in re.findall("..", _CHINESE)}


def _any(alternatives: str) -> re.Pattern[str]:
    pattern = f"(?:{joined(alternatives)})"
    return re.compile(pattern.translate(_BOTH_SCRIPTS), re.IGNORECASE)


_SURE = joined(r"""
    (?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|great|got it|yes|understood|no problem
    |(?:i['’]d be |i['’]?m )?(?:happy|glad) to(?: help)?
    |好的|当然(?:可以)?|没问题|可以
    |もちろん(?:です)?|はい|承知しました
    |natürlich|gerne?|klar
    |¡?claro|por supuesto
    |bien sûr|certainement|d['’]accord)
""")
# The first word of an introduction that ends in a colon.
_OPENER = joined(r"""
    (?:here\b|below|another way|one (?:way|option)|to rephrase|i(?:['’]d| would)\b
    |the |these |this is|as requested|based on|following|i['’](?:ve|ll)|i have|for (?:the|your)|some
    |sentences?\b|synonym|antonym|possible|generated|my|your|an?\b|\*\*(?:the|here)
    |(?:two|three|four|five|\d{1,3})\b
    |以下|下面|这里|这是|根据|您好|你好|我|为|对于|同义|反义|生成|可能
    |hier|folgende|aquí|voici
    |次の)
""")
# "Here are three paraphrases:", "Sure!", "Yes, of course!"
LEAD = _any(rf"""
    (?:{_SURE}\b[!.,;。，！~😊]*\s*){{0,3}}(?P<intro>{_OPENER}[^:：\n]{{0,400}}[:：](?!=))
    |{_SURE}\b(?:[,，]\s?{_SURE}\b){{0,2}}(?:$|[!.。！]\s*)
""")
# "1.", "2)"
COUNTED = re.compile(r"\d{1,3}\s?[.)、:：]")
# Words of an introduction: "two ways to say it", "the opposite"
ABOUT = _any(r"""
    (?:sentence|version|variation|alternative)s?\b|nym|phras|rewrit|reword|meaning|opposite|negat
    |here (?:you|they)|way to (?:say|put|express)|^one option|here['’]s (?:one|another)
    |句|义词|改写|如下|以下|意思
    |文です|言い換え|次の
    |s[äa]tze?\b|umformulier|gegenteil
    |oraci[oó]n|frases?\b|[oóô]nim[oa]
""")
# Words of a remark; ignored if the text to rewrite has them: "this version keeps the same meaning"
META = _any(r"""
    \b(?:synonym|antonym|paraphras|rephras|reword|rewrit|negat(?:es|ion|ed)|replac|substitut|convey(?:s|ed|ing)?\b
    |emphasi[sz])
    |\bpreserv(?:e[sd]?|ing) (?:the|its|all|both)\b|\bsentence
    |\b(?:same|original|opposite|similar|core) (?:meaning|idea|sense)
    |\b(?:passive|active) voice
    |\b(?:this|these|both|each) (?:version|option|variation|phrase|word|verb|one)\b
    |句子|同义|反义|原句|原文|意思|替换|改写|表达|否定
    |同義|対義|表現|言い換え
    |\b(?:bedeutung|gegenteil|significado)
""")
# A label without content: "Output:", "Final answer:"
HEAD = _any(r"""
    (?:the )?(?:final )?(?:outputs?(?: sentences?)?|responses?|answers?|assistant|ai|chatgpt|bot|model|results?
    |输出(?:句子)?|回答|答案?|结果|助手
    |出力|ausgabe|antwort|salida|respuesta|réponse) ?[:：][*_]*\s*
""")
_TEXT_COLON = r"(?: (?:sentence|text|statement|phrase|version|one))? ?[*_]{0,2}[:：]"
# A repetition of the question: "Original sentence:", "User:"
ECHO = _any(rf"""
    (?:the )?(?:original|source|given|provided|initial)(?: input)?{_TEXT_COLON}
    |(?:new |next )?(?:input|user|human|question|instructions?|task|prompt|query|q){_TEXT_COLON}
    |(?:原始?(?:句子?|文)|给定句子?|输入(?:句子|文本)?|用户|问题?|指令
    |元の文|入力文?|eingabe|entrada|originalsatz|ausgangssatz) ?[:：]
    |you are a (?:highly smart|helpful assistant)
    |你是一个(?:非常|高度)?(?:聪明|智能)
""")
_KIND = joined(r"""
    (?:synonym(?:ous|s)?|antonym(?:ous|s)?|paraphrased?|rephras(?:ed|ing)|rewrit(?:ten|e)
    |negat(?:ed|ion|ive)|positive|opposite|contrary|similar|(?:same|opposite)[- ]meaning|alternative
    |generated|new|output|sentence|version|variation|variant|option|statement|text|result|a(?=[:：]))
""")
_STYLE = joined(r"""
    (?:(?:more|slightly|very|less|an?|using|in|with) )*
    (?:(?:in)?formal|casual|neutral|polite|(?:in)?direct|simpl|short|long|concise|literal|figurative|poetic
    |active|passive|emphatic|question|academic|professional|friendly|first|second|third|fourth|fifth
    |书面|口语|正式|简洁|丁寧|satz|gegenteil|oraci|frase|sin[óo]nim|ant[óo]nim|phrase|variante|opci)
    \w*(?: [\w-]+){0,2}
""")
_NUMBERED = r"(?:#|no\.? ?)?(?:\d{1,3}|[A-J]\b|[一二三四五六七八九十])?"
# The kind, number or style in front of a sentence: "Paraphrase 1:", "More formal:", "第一个同义句："
LABEL = _any(rf"""
    (?:(?:the |an? )?(?:{_KIND}[ -]?){{1,4}}(?: of [\w ]{{1,30}})?|{_STYLE}|反対|同義|言い換え|文
    |(?:동의|유의|반의|반대|같은 의미의?)어?(?: ?문장)?|ประโยค[^:\n]{{0,40}}|(?:câu )?(?:đồng|trái) nghĩa
    |(?:синоним|антоним|συνώνυμ|αντώνυμ|مرادف|معاكس|عكس|समानार्थी|विलोम)\w*(?: वाक्य)?
    |(?:第[一二三四五六七八九十\d]{{1,3}}(?:个|条)?)?(?:同义|近义|反义|相反|否定|改写|新)?的?
    (?:句子?|版本|表达|选项|词)(?:话|子)?)
    [ ]?{_NUMBERED}[*_]{{0,2}} ?(?:\([^()\n]{{1,40}}\) ?)?
    (?:[:：][*_]{{0,2}}(?!\d)|(?<=[\d])(?:[.)]| [-–—])(?=\s))\s*
""")
# "**Formal:** ", "**Formal** - "
BOLD_LABEL = re.compile(
    r"\*\*[^*:：\n]{1,60}(?:[:：]\s*\*\*|\*\*\s*(?:[:：]|[-–—](?=\s)))\s*"
)
# The label of a remark: "Note:", "Explanation 2:"
NOTE = _any(r"""
    (?:please )?(?:key |brief )?(?:note|explanation|explication|justification|why|disclaimer|remark|comment
    |reason(?:ing)?|rationale|translation|changes?(?: made)?|difference|technique|approach|tone|context
    |analysis|confidence|score)s?(?: \d{1,2})?[*_ ]{0,3}[:：]
    |(?:注意?|说明|解释|备注|理由|原因|分析|翻译|拼音
    |説明|補足|解説|注釈
    |hinweis|erklärung|begründung|anmerkung
    |notas?|explicaci[oó]n|explicação|justificaci[oó]n|spiegazione|remarque
    |объяснение|пояснение|설명|참고)s? ?[:：]
""")
# The end of an answer: "Let me know if …", "I hope this helps"
CLOSING = _any(r"""
    (?:please )?note (?:that|,)|please (?:let me know|keep in mind)|let me know|feel free|thank
    |would you|keep in mind|(?:i )?hope (?:this|these|that|you)
    |if (?:that|you (?:need|have|would|want|['’]d|require))|is there anything
    |(?:all |each |both )?(?:of )?(?:the )?(?:these|this|each|both|here|in this) (?:\w+ )?
    (?:sentence|paraphrase|antonym|synonym|version|option)s?\b
    |do you (?:want|need)|shall i|it['’]s (?:worth|important)|overall,|enjoy\b|good luck
    |happy to help|you['’]re welcome|end of
    |希望(?:这|以上|对|能)|如果(?:您|你)|如有|如需|请注意|这些|以上(?:是|句子)|请告诉我|请问
    |お役に立て|何か|必要
    |ich hoffe|lass mich|wenn du|falls sie
    |¡?espero|si necesitas|n['’]hésitez|j['’]espère
""")
_CANNOT = joined(r"""
    (?:\bi (?:can['’]?t|cannot|can not|won['’]t|will not|must|decline)|\bi(?: am|['’]m) (?:not able|unable)
    |i (?:don['’]t|do not) (?:feel|have|understand)
    |无法|不能|不会|没办法|没有学会|不太?明白)
""")
_TASK = joined(r"""
    (?:generat|provid|creat|produc|assist|help|fulfil|compl|answer|respond|engag|discuss|rewrit|paraphras
    |request|sentence|content
    |生成|提供|给到|回答|满足|协助|帮助|完成|处理|讨论|改写|您的)
""")
# Refusals in other languages than English and Chinese: an apology or "as an AI", and in the same line
# "I can't" and words of the task.
_OTHER_SORRY = joined(r"""
    (?:es )?tut mir leid|leider|entschuldig
    |désolée?|je suis (?:vraiment )?désolée?|malheureusement
    |¡?lo siento|lamentablemente|lamento
    |mi dispiace|purtroppo
    |desculpe|sinto muito|infelizmente
    |het spijt me|helaas
    |извини|простите|к сожалению
    |عذر|آسف|أعتذر|للأسف
    |申し訳|すみません|죄송|미안
    |przykro mi|przepraszam|niestety
    |üzgünüm|maalesef
    |क्षमा|माफ|मुझे खेद
    |xin lỗi|rất tiếc|maaf
    |als (?:eine? )?(?:ki\b(?!-)|(?:ki-)?sprachmodell|ki-assistent)
    |en tant qu['’](?:ia\b|intelligence|assistant|un modèle)
    |como (?:una? |um )?(?:modelo de|ia\b|inteligenc|inteligênc|asistente|assistente)
    |come (?:una? )?(?:ia\b|modello|intelligenza|assistente)
    |как (?:ии\b|языковая модель|искусственн)
    |كنموذج|بصفتي نموذج
    |ai(?:言語モデル)?として|ai ?(?:언어 ?모델)?로서
    |jako (?:model|ai\b|sztuczna)
""")
_OTHER_CANNOT = joined(r"""
    (?:ich kann|kann ich)\b[^\n]{0,80}(?:nicht|kein)
    |(?:ik kan|kan ik)\b[^\n]{0,80}(?:niet|geen)
    |ne peux|ne puis|ne suis pas en mesure|no puedo|non posso|não posso
    |не могу|لا (?:أستطيع|يمكنني)|nie mogę
    |[ae]m[ae]m\b|[ae]m[ıi]yorum
    |(?:でき|られ|応え|伝え|添え)ません(?!か)|かねま
    |수 ?없(?!나|을까)
    |नहीं[^\n]{0,9} सक|सक[^\n]{0,9} नहीं
    |tôi không thể|saya tidak (?:dapat|bisa)
""")
_OTHER_TASK = joined(r"""
    helf|hilf|anfrage|antwort|formulier|erstell|ratschl
    |aide|demande|répon|fourni|formul|conse
    |ayud|ajud|aiut|solicit|richiest|pedido|respon|rispon|proporcion|forne|consigl
    |help|verzoek
    |помо|запрос|ответ|предостав
    |مساعد|أساعد|طلب|إجاب|تقديم
    |手伝|応え|答え|リクエスト|要求
    |도와|도움|요청|답변
    |pom[oó]|prośb|odpowied
    |yardım|iste[kğ]|yanıt
    |सहायता|मदद|अनुरोध|उत्तर
    |hỗ trợ|giúp|yêu cầu
    |membantu|permintaan
""")
# "I'm sorry, but I can't help with that request", "As an AI …", "Please provide the sentence"
REFUSAL = _any(rf"""
    (?={_OTHER_SORRY})(?=[^\n]{{0,200}}(?:{_OTHER_CANNOT}))(?=[^\n]{{0,200}}(?:{_OTHER_TASK}))
    |(?:i(?:['’]m| am) (?:\w+ )?(?:sorry|afraid)|i apologi[sz]e|my apologies|sorry|unfortunately
    |很?抱歉|对不起|很遗憾)[^\n]{{0,80}}?(?:{_CANNOT}[^\n]{{0,60}}?{_TASK}
    |as an ai|作为|the (?:input|given|text you)|your (?:request|input))
    |(?:[您你]好[,，！!] ?)?(?:这个问题)?我?(?:暂时|目前)?{_CANNOT}[^\n]{{0,30}}?{_TASK}[^\n]{{0,60}}?
    (?:nym|sentence|request|content|with (?:that|this)|句|请求|内容|要求|话题)
    |(?:this|your) (?:content|request|prompt|input|text|sentence)\b[^\n]{{0,60}}(?:violat|flagged)[^\n]{{0,40}}polic
    |(?:as|i(?:['’]m| am)(?: just)?) an? (?:\w+ )?(?:ai|artificial|language model)\b
    |作为(?:一个|一名)?(?:ai|人工智能)
    |(?:please|(?:could|can|would) you(?: please)?) (?:provide|give|share|specify|clarify)
    [^\n]{{0,40}}(?:sentence|input|mean|text (?:you|to))
    |请(?:您)?提供
    |(?:it (?:seems|looks)|it(?: is|['’]s) (?:not |im)possible to|there is no|you haven['’]t)[^\n]{{0,60}}
    (?:input|sentence)
""")
# In place of a sentence: "N/A", "None", "No further paraphrases"; not "No other man plays"
NOTHING = _any(r"""
    [\W_]*+(?:n/?a|none|null|nil|tbd|same as (?:above|before)|无
    |no (?:further|more|other)s?(?:[\w\s-]{0,30}(?:nym|phras|sentence|version|variation|rewrit|reword)[\w\s-]{0,40}
    | (?:\w+ )?(?:alternative|option|answer|way)s?)?)?[\W_]*+
""")
# A value of the schema that a small model repeats: "sentence 1", "[Insert sentence here]"
PLACEHOLDER = _any(r"""
    [\W_]*+(?:(?:insert |your )(?:\w+ ){0,2}(?:sentence|paraphrase)(?: here)?
    |(?:\w+ )?(?:sentence|paraphrase|antonym|synonym|句子?) ?\d{1,2})[\W_]*+
""")
# "Wait, …", but not "Wait for the bus"
_WAIT = (
    r"(?:wait\b(?! (?:for|un?till?|at|in|on|by|to|with|here|there|outside|your)\b)"
    r"|hold on\b(?! (?:to|for|un?till?|tight)\b))"
)
_MAKE = r"(?:write|produce|generate|create|make|output|give|use|say|find|provide|replace|negate|express)\b"
# Reasoning in front of the answer: "Okay, I need to write …", "Let's see"
THINKS = _any(rf"""
    (?:(?:okay|ok|hmm+|well|so|now|first|then|next|but|wait|maybe|actually)[,.…!]* )*
    (?:let me (?!know)|let['’]s (?:see|think|try)
    |(?:i|we) (?:need|have|should|must|want|could|can|will) (?:to )?{_MAKE}
    |the user (?:wants|asks|says)
    |to {_MAKE} (?:\w+ ){{0,4}}(?:sentence|nym|opposite|version|meaning|it\b)
    |(?:draft|thinking|step) ?(?:\d+ ?)?[:：])
    |(?:hmm+|okay, so)\b|{_WAIT}
    |嗯|用户(?:想|要|希望|让)|我(?:需要|应该)|让我
""")
# "Oops,", "Wait, scratch that"
CORRECTS = _any(rf"""
    (?:(?:hmm+|oh|oops|no|sorry|well|actually),? )*
    (?:oops|{_WAIT}|scratch that|correction\b|let me (?:correct|fix|redo)
    |(?:my )?apologies\b|i apologi[sz]e|(?:i['’]m )?sorry,? (?:those|these|that|for|about)\b|i mis\w+)
    |等等|不对|更正
""")
# The keys of JSON, for the question,
ECHO_NAME = _any(r"""
    (?:the )?(?:original|input|source|given|prompt|question|query|instruction|premise|user
    |原|输入|问|入力|entrada)
""")
# for remarks and numbers ("change" and "sentence_id", but not "changed_sentence"),
SIDE_NAME = _any(r"""
    (?:(?:detailed|brief|short) )?(?:explanation|explain|note|reason(?:ing)?|rationale|why|id|index|number|no|nr
    |draft|label|type|kind|lang(?:uage)?|polarity|score|similarity|confidence|rank(?:ing)?|difference|change|comment
    |remark|title|status|error|message|detail|description|code|model|role|task|though?t|thinking|analysis
    |technique|method|strategy|style|tone|category|categories|meta(?:data)?|count|total|date|key|usage|context
    |translation|pinyin)s?(?![^\W\d])
    |[\w ]* (?:id|index|number|type|kind|score|rank|count|length)\Z
    |#|解释|说明|编号|序号|备注|类型|理由|分析|説明|erklärung|hinweis|nota\b
""")
# for a sentence,
SENTENCE_NAME = _any(r"""
    sentence|text|output|nym|phras|rewrit|reword|result|answer|response|content|generat|value|version
    |variation|variant|alternative|option|opposite|negat|positive|candidate|statement
    |句|义|文本|输出|结果|内容|改写|答案
    |satz|frase
""")
# and for the polarities, also in headings.
POSITIVE = _any(r"""
    s[iy]n[oóôò]n[iy]e?m|синоним|перефраз|동의|유의어|같은 의미|مرادف|समानार्थ|पर्याय|eş ?anlam
    |paraphr|rephras|reword|\bsame\b|same[- _]?meaning|similar|equivalent|\bpositives?\b|umformulier
    |同义|近义|意思相同|同じ意味|言い換え
    |συνώνυμ|נרדפ|مترادف|เหมือน|พ้อง|đồng nghĩa|т(?:ем|о|ого) же значени
""")
NEGATIVE = _any(r"""
    ant[oóôò]n[iy]e?m|антоним|противополож|отрица|반대|반의|عكس|مضاد|विलोम|विपरीत|zıt ?anlam
    |tegen(?:gesteld|deel)|gegens[äa]tz|przeciw|opposé|opposite|negat(?:ion|ed|ive)|contrar(?:y|i)|contradict
    |gegenteil|different[- _]?meaning|反义|相反|否定|反対|対義|意思不同
    |αντώνυμ|αντίθετ|הפוכ|متضاد|ตรงข้าม|ตรงกันข้าม|trái nghĩa
""")
_NOT = re.compile(
    r"(?:not|non|nicht|un|dis|不|非|不是)[\W_]*(?:the )?\Z", re.IGNORECASE
)


def why_no_sentence(
    piece: str, source: SourceText, *, in_list: bool = False
) -> str | None:
    """The reason why a piece is not a sentence, by its words; None if it may be one."""
    bare = piece.lstrip("#*_>[(（ ")
    if NOTHING.fullmatch(piece):
        return "refusal" if has_words(piece) else "unparsable"
    if source.begins(REFUSAL, bare) and not source.resembles(piece):
        return "refusal"
    if source.begins(ECHO, bare) or source.equals(bare.strip("\"'“”*_ ")):
        return "echo"
    if source.begins(NOTE, bare):
        return "closing_note"
    if in_list:
        return "preamble" if PLACEHOLDER.fullmatch(piece) else None
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
    if stop:
        sentence = intro[: stop.end()]
        begins = sentence.lower().startswith(("here", "below", "i"))
        may_rewrite = source.resembles(sentence) or source.is_as_long_as(sentence)
        if may_rewrite and not begins and not ABOUT.search(sentence):
            return 0  # `The man plays. (Synonym used: plays)`
    return lead.end() if ABOUT.search(lead.group()) else 0


def side_of(name: str) -> Literal["echo", "side_field", "sentence"] | None:
    """What the value of a JSON key, of a column or below a heading is: a reason to drop it, or a sentence."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", name[:80]).strip() or name[:80]
    if ECHO_NAME.match(plain):
        return "echo"
    if SIDE_NAME.match(plain):
        return "side_field"
    return "sentence" if SENTENCE_NAME.search(plain) else None


def polarity_of(name: str) -> Polarity | None:
    """The polarity that a name or heading states; None for neither or both."""
    name = name[:200]
    positive = POSITIVE.search(name)
    negative = NEGATIVE.search(name)
    stated = positive or negative
    if stated is None or (positive and negative):
        return None
    is_negated = _NOT.search(name, 0, stated.start()) is not None
    return "negative" if is_negated == (stated is positive) else "positive"


def may_be_sentence(piece: str, source: SourceText) -> bool:
    """Whether a piece only begins like a remark: it has a word of the text, and none about sentences."""
    is_about_task = _QUOTE.search(piece) or ABOUT.search(piece) or META.search(piece)
    if is_about_task or not (THINKS.match(piece) or CLOSING.match(piece)):
        return False
    common = source.words.intersection(words(piece))
    return any(len(word) > 3 or not word.isascii() for word in common)


def is_remark(piece: str, source: SourceText) -> bool:
    """Whether a piece, unlike the text, is about words or sentences."""
    is_about_words = META.search(piece[:500]) is not None
    return is_about_words and source.lacks(META) and not source.resembles(piece)
