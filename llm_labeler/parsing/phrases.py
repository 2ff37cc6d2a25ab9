"""Patterns of introductions, comments and refusals in English, Chinese, Japanese and other languages.

A pattern is ignored if the text to rewrite begins in the same way ("I'm sorry, …", "Let me know …").
"""

from __future__ import annotations

import re


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(alternatives)})", re.IGNORECASE)


_SURE = (
    "(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|great|got it|yes|understood|no problem"
    "|(?:i['’]d be |i['’]?m )?(?:happy|glad) to(?: help)?|好的|当然(?:可以)?|没问题|可以|もちろん(?:です)?"
    "|はい|承知しました|natürlich|gerne?|klar|¡?claro|por supuesto|bien sûr|certainement|d['’]accord)"
)
_OPENER = (
    r"(?:here\b|below|another way|one (?:way|option)|to rephrase|i(?:['’]d| would)\b"
    r"|the |these |this is|as requested|based on|following|i['’](?:ve|ll)|i have|for (?:the"
    r"|your)|some|sentences?\b|synonym|antonym|possible|generated|my|your|an?\b|\*\*(?:the|here)|(?:two"
    r"|three|four|five|\d{1,3})\b|以下|下面|这里|这是|根据|您好|你好|我|为|对于|同义|反义|生成|可能|hier"
    r"|folgende|aquí|voici|次の)"
)
# An introduction: up to the colon, or "Sure!", "Yes, of course!".
LEAD = _any(
    rf"(?:{_SURE}\b[!.,;。，！~😊]*\s*){{0,3}}(?P<intro>{_OPENER}[^:：\n]{{0,400}}[:：](?!=))",
    rf"{_SURE}\b(?:[,，]\s?{_SURE}\b){{0,2}}(?:$|[!.。！]\s*)",
)
COUNTED = re.compile(r"\d{1,3}\s?[.)、:：]")
# Words of an introduction.
ABOUT = _any(
    r"(?:sentence|version|variation|alternative)s?\b|nym|phras|rewrit|reword|meaning|opposite|negat"
    r"|here (?:you|they)|way to (?:say|put|express)|^one option|here['’]s (?:one|another)",
    r"句|义词|改写|如下|以下|意思|文です|言い換え|次の|s[äa]tze?\b|umformulier|gegenteil|oraci[oó]n"
    r"|frases?\b|[oóô]nim[oa]",
)
# Words of a remark; ignored if the text to rewrite has them.
META = _any(
    r"\b(?:synonym|antonym|paraphras|rephras|reword|rewrit|negat(?:es|ion|ed)|replac|substitut|convey(?:s|ed|ing)?\b"
    r"|emphasi[sz])",
    r"\bpreserv(?:e[sd]?|ing) (?:the|its|all|both)\b|\bsentence",
    r"\b(?:same|original|opposite|similar|core) (?:meaning|idea|sense)",
    r"\b(?:passive|active) voice|\b(?:this|these|both|each) (?:version|option|variation|phrase|word|verb"
    r"|one)\b",
    r"句子|同义|反义|原句|原文|意思|替换|改写|表达|否定|同義|対義|表現|言い換え|\b(?:bedeutung|gegenteil"
    r"|significado)",
)
# A label without content: `Output:`.
HEAD = _any(
    r"(?:the )?(?:final )?(?:outputs?(?: sentences?)?|responses?|answers?|assistant|ai|chatgpt|bot|model"
    r"|results?|输出(?:句子)?|回答|答案?|结果|助手|出力|ausgabe|antwort|salida|respuesta"
    r"|réponse) ?[:：][*_]*\s*"
)
_SAID = r"(?: (?:sentence|text|statement|phrase|version|one))? ?[*_]{0,2}[:：]"
# A repetition of the question.
ECHO = _any(
    rf"(?:the )?(?:original|source|given|provided|initial)(?: input)?{_SAID}",
    rf"(?:new |next )?(?:input|user|human|question|instructions?|task|prompt|query|q){_SAID}",
    r"(?:原始?(?:句子?|文)|给定句子?|输入(?:句子|文本)?|用户|问题?|指令|元の文|入力文?|eingabe|entrada"
    r"|originalsatz|ausgangssatz) ?[:：]|you are a (?:highly smart|helpful assistant)|你是一个(?:非常"
    r"|高度)?(?:聪明|智能)",
)
# A label in front of a sentence: its kind, number or style.
_KIND = (
    r"(?:synonym(?:ous|s)?|antonym(?:ous|s)?|paraphrased?|rephras(?:ed|ing)|rewrit(?:ten|e)|negat(?:ed|ion"
    r"|ive)|positive|opposite|contrary|similar|(?:same|opposite)[- ]meaning|alternative|generated|new|output"
    r"|sentence|version|variation|variant|option|statement|text|result|a(?=[:：]))"
)
_STYLE = (
    r"(?:(?:more|slightly|very|less|an?|using|in|with) )*(?:(?:in)?formal|casual|neutral|polite"
    r"|(?:in)?direct|simpl|short|long|concise|literal|figurative|poetic|active|passive|emphatic|question"
    r"|academic|professional|friendly|first|second|third|fourth|fifth|书面|口语|正式|简洁|丁寧|satz"
    r"|gegenteil|oraci|frase|sin[óo]nim|ant[óo]nim|phrase|variante|opci)\w*(?: [\w-]+){0,2}"
)
LABEL = _any(
    rf"(?:(?:the |an? )?(?:{_KIND}[ -]?){{1,4}}(?: of [\w ]{{1,30}})?|{_STYLE}|反対|同義|言い換え|文"
    r"|(?:第[一二三四五六七八九十\d]{1,3}(?:个|条)?)?(?:同义|近义|反义|相反|否定|改写|新)?的?(?:句子?|版本"
    r"|表达|选项|词)(?:话|子)?) ?(?:#|no\.? ?)?(?:\d{1,3}|[A-J]\b"
    r"|[一二三四五六七八九十])?[*_]{0,2} ?(?:\([^()\n]{1,40}\) ?)?(?:[:：][*_]{0,2}(?!\d)|(?<=[\d])(?:[.)]"
    r"| [-–—])(?=\s))\s*"
)
BOLD_LABEL = re.compile(
    r"\*\*[^*:：\n]{1,60}(?:[:：]\s*\*\*|\*\*\s*(?:[:：]|[-–—](?=\s)))\s*"
)
NOTE = _any(
    r"(?:please )?(?:key |brief )?(?:note|explanation|explication|justification|why|disclaimer|remark|comment"
    r"|reason(?:ing)?|rationale"
    r"|translation|changes?(?: made)?|difference|technique|approach|tone|context|analysis|confidence"
    r"|score)s?(?: \d{1,2})?[*_ ]{0,3}[:：]|(?:注意?|说明|解释|备注|理由|原因|分析|翻译|拼音|説明|補足"
    r"|解説|注釈|hinweis|erklärung|begründung|anmerkung|notas?|explicaci[oó]n|explicação|justificaci[oó]n"
    r"|spiegazione|remarque|объяснение|пояснение|설명|참고)s? ?[:：]",
)
CLOSING = _any(
    r"(?:please )?note (?:that|,)|please (?:let me know|keep in mind)|let me know|feel free|thank"
    r"|would you|keep in mind",
    r"(?:i )?hope (?:this|these|that|you)|if (?:that|you (?:need|have|would|want|['’]d|require))"
    r"|is there anything",
    r"(?:all |each |both )?(?:of )?(?:the )?(?:these|this|each|both|here|in this) (?:\w+ )?(?:sentence"
    r"|paraphrase|antonym|synonym|version|option)s?\b|do you (?:want|need)|shall i|it['’]s (?:worth"
    r"|important)|overall,|enjoy\b|good luck",
    r"happy to help|you['’]re welcome|end of|希望(?:这|以上|对|能)|如果(?:您|你)|如有|如需|请注意|这些"
    r"|以上(?:是|句子)|请告诉我|请问",
    r"お役に立て|何か|必要|ich hoffe|lass mich|wenn du|falls sie|¡?espero|si necesitas|n['’]hésitez"
    r"|j['’]espère",
)
_CANNOT = (
    r"(?:\bi (?:can['’]?t|cannot|can not|won['’]t|will not|must|decline)|\bi(?: am|['’]m) (?:not able"
    r"|unable)|i (?:don['’]t|do not) (?:feel|have|understand)|无法|不能|不会|没办法|没有学会|不太?明白)"
)
_TASK = (
    r"(?:generat|provid|creat|produc|assist|help|fulfil|compl|answer|respond|engag|discuss|rewrit|paraphras"
    r"|request|sentence|content|生成|提供|回答|满足|协助|帮助|完成|处理|讨论|改写|您的)"
)
# Refusals in other languages: an apology or "as an AI", and in the same line "I can't" and words of the task.
_SORRY = (
    r"(?:es )?tut mir leid|leider|entschuldig|désolée?|je suis (?:vraiment )?désolée?|malheureusement"
    r"|¡?lo siento|lamentablemente|lamento|mi dispiace|purtroppo|desculpe|sinto muito|infelizmente"
    r"|het spijt me|helaas|извини|простите|к сожалению|عذر|آسف|أعتذر|للأسف|申し訳|すみません|죄송|미안"
    r"|przykro mi|przepraszam|niestety|üzgünüm|maalesef|क्षमा|माफ|मुझे खेद|xin lỗi|rất tiếc|maaf"
    r"|als (?:eine? )?(?:ki\b(?!-)|(?:ki-)?sprachmodell|ki-assistent)|en tant qu['’](?:ia\b|intelligence"
    r"|assistant|un modèle)|como (?:una? |um )?(?:modelo de|ia\b|inteligenc|inteligênc|asistente|assistente)"
    r"|come (?:una? )?(?:ia\b|modello|intelligenza|assistente)|как (?:ии\b|языковая модель|искусственн)"
    r"|كنموذج|بصفتي نموذج|ai(?:言語モデル)?として|ai ?(?:언어 ?모델)?로서|jako (?:model|ai\b|sztuczna)"
)
_I_CANNOT = (
    r"(?:ich kann|kann ich)\b[^\n]{0,80}(?:nicht|kein)|(?:ik kan|kan ik)\b[^\n]{0,80}(?:niet|geen)|ne peux"
    r"|ne puis|no puedo|non posso|não posso|не могу|لا (?:أستطيع|يمكنني)|nie mogę|[ae]m[ae]m\b|[ae]m[ıi]yorum"
    r"|(?:でき|られ|応え|伝え|添え)ません(?!か)|かねま|수 ?없(?!나|을까)|नहीं[^\n]{0,9} सक|सक[^\n]{0,9} नहीं"
    r"|tôi không thể|saya tidak (?:dapat|bisa)"
)
_TASKS = (
    r"helf|hilf|anfrage|antwort|formulier|erstell|ratschl|aide|demande|répon|fourni|formul|conse|ayud|ajud"
    r"|aiut|solicit|richiest|pedido|respon|rispon|proporcion|forne|consigl|help|verzoek|помо|запрос|ответ"
    r"|предостав|مساعد|أساعد|طلب|إجاب|تقديم|手伝|応え|答え|リクエスト|要求|도와|도움|요청|답변|pom[oó]|prośb"
    r"|odpowied|yardım|iste[kğ]|yanıt|सहायता|मदद|अनुरोध|उत्तर|hỗ trợ|giúp|yêu cầu|membantu|permintaan"
)
REFUSAL = _any(
    rf"(?={_SORRY})(?=[^\n]{{0,200}}(?:{_I_CANNOT}))(?=[^\n]{{0,200}}(?:{_TASKS}))",
    r"(?:i(?:['’]m| am) (?:\w+ )?(?:sorry|afraid)|i apologi[sz]e|my apologies|sorry|unfortunately|很?抱歉"
    r"|对不起|很遗憾)"
    rf"[^\n]{{0,80}}?(?:{_CANNOT}[^\n]{{0,60}}?{_TASK}|as an ai|作为|the (?:input|given|text you)"
    rf"|your (?:request|input))",
    rf"我?{_CANNOT}[^\n]{{0,30}}?{_TASK}[^\n]{{0,60}}?(?:nym|sentence|request|content|with (?:that|this)"
    rf"|句|请求|内容|要求)",
    r"(?:as|i(?:['’]m| am)(?: just)?) an? (?:\w+ )?(?:ai|artificial|language model)\b|作为(?:一个"
    r"|一名)?(?:ai|人工智能)",
    r"(?:please|(?:could|can|would) you(?: please)?) (?:provide|give|share|specify"
    r"|clarify)[^\n]{0,40}(?:sentence|input|mean|text (?:you|to))|请(?:您)?提供|(?:it (?:seems|looks)"
    r"|there is no|you haven['’]t)[^\n]{0,60}(?:input|sentence)",
)
NOTHING = _any(
    r"[\W_]*(?:n/?a|none|null|nil|tbd|same as (?:above|before)|无|no (?:further|more"
    r"|other)[\w\s-]{0,60})?[\W_]*"
)
_MAKE = r"(?:write|produce|generate|create|make|output|give|use|say|find|provide|replace|negate|express)\b"
THINKS = _any(
    r"(?:(?:okay|ok|hmm+|well|so|now|first|then|next|but|wait|maybe|actually)[,.…!]* )*(?:let me (?!know)"
    r"|let['’]s (?:see"
    rf"|think|try)|(?:i|we) (?:need|have|should|must|want|could|can|will) (?:to )?{_MAKE}|the user (?:wants"
    rf"|asks|says)|to {_MAKE} (?:\w+ ){{0,4}}(?:sentence|nym|opposite|version|meaning|it\b)|(?:draft"
    rf"|thinking|step) ?(?:\d+ ?)?[:：])",
    r"(?:hmm+|wait|okay, so)\b|嗯|用户(?:想|要|希望|让)|我(?:需要|应该)|让我",
)
CORRECTS = _any(
    r"(?:(?:hmm+|oh|oops|no|sorry|well|actually),? )*(?:oops|wait|hold on|scratch that|correction\b"
    r"|let me (?:correct|fix|redo))|等等|不对|更正"
)
ECHO_NAME = _any(
    r"(?:the )?(?:original|input|source|given|prompt|question|query|instruction|premise|user|原|输入|问"
    r"|入力|entrada)"
)
SIDE_NAME = _any(
    r"(?:explanation|explain|notes?\b|reason|rationale|why|id\b|index|number|no\b|#|nr\b|label|type|kind"
    r"|lang|polarity|score|similarity|confidence|rank|difference|change|comment|remark|title|status|error"
    r"|message|detail|description|code|model|role|task|though?t|thinking|analysis|technique|method"
    r"|strategy|style|tone|category|meta|count|total|date|key\b|usage|context|translation|pinyin|解释|说明"
    r"|编号|序号|备注|类型|理由|分析|説明|erklärung|hinweis|nota\b)",
)
SENTENCE_NAME = _any(
    r"sentence|text|output|nym|phras|rewrit|reword|result|answer|response|content|generat|value|version"
    r"|variation",
    r"variant|alternative|option|opposite|negat|positive|candidate|statement|句|义|文本|输出|结果|内容"
    r"|改写|答案|satz|frase",
)
POSITIVE = _any(
    r"s[iy]n[oóôò]n[iy]e?m|синоним|перефраз|동의|유의어|같은 의미|مرادف|समानार्थ|पर्याय|eş ?anlam",
    r"paraphr|rephras|reword|\bsame\b|same[- _]?meaning|similar|equivalent"
    r"|\bpositives?\b|umformulier|同义|近义|意思相同|同義|同じ意味|言い換え",
)
NEGATIVE = _any(
    r"ant[oóôò]n[iy]e?m|антоним|противополож|отрица|반대|반의|عكس|مضاد|विलोम|विपरीत|zıt ?anlam",
    r"tegen(?:gesteld|deel)|gegens[äa]tz|przeciw|opposé|opposite|negat(?:ion|ed|ive)|contrar(?:y|i)|contradict|gegenteil|反义|相反|否定"
    r"|反対|対義",
)
