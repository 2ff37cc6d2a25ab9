"""How models speak about what they write: patterns for remarks, reasoning and drafts."""

from __future__ import annotations

from llm_labeler._parse.phrases import compiled

# What speaks of sentences and their making, and not of what sentences speak of.
META = compiled(
    r"\b(?:synonym|antonym|paraphras|rephras|reword|rewrit|rewrote|negation|sentence|sinónim|antónim)",
    r"\b(?:same|original|opposite|similar|core|intended|overall) (?:meaning|idea|message|essence|sense"
    r"|sentiment|thought)",
    r"\b(?:this|these|each|both|every|all|last|first|second|third) (?:\w+ )?(?:version|wording|phrasing"
    r"|variation|variant|option|alternative|phrase|verb|adjective|noun|adverb|word|statement|expression"
    r"|structure|example)s?\b",
    r"\b(?:passive|active) voice\b|\bby (?:replacing|changing|using|swapping|negating)\b",
    r"\b(?:replac|swapp|substitut|reorder|convey|emphasi[sz]|negat|preserv)(?:e|es|ed|s|ing)?\b",
    "句子|同义|反义|原句|原文|意思|替换|改写|表达|表述|否定|同義|対義|表現|言い換え|意味",
    r"\b(?:satz|sätze|bedeutung|gegenteil|oraci[oó]n|oraciones|significado|phrases)\b",
)
# How a line begins that comments on the sentence above it, and what it speaks of.
COMMENT = compiled(
    r"(?:here|this|these|in (?:this|the|that)|it|both|each|i|we|by|with|using|the (?:first|second|third|last"
    r"|verb|noun|word|adjective|adverb|phrase|subject|object|meaning|tense|clause|sentence|original))\b",
    "[\"“'‘「][^\"”'’」]{1,30}[\"”'’」]|(?:本|这|该|此)句|这里|这|将|把|用",
)
GRAMMAR = compiled(
    r"\b(?:(?:subordinate|main|relative|passive|active) (?:clause|voice|form)|word order|(?:past|present"
    r"|future) tense|adverbial|predicate|pronoun|prefix|suffix|this one)\b",
    r"[\"“'‘「]\S{1,20}(?: \S{1,20}){0,2}[\"”'’」]",
)
# How a remark begins that stands behind a sentence.
REMARK = compiled(
    r"(?:note|explanation|synonym|antonym|opposite|meaning|same|similar|negat|chang|replac|swap|here\b"
    r"|this\b|these\b|original|using|uses?\b|used\b|with (?:the|an?) (?:word|verb|adjective|noun|phrase"
    r"|synonym|antonym)|by \w+ing\b|emphasi|focus|more (?!than)|less (?!than)|slightly"
    r"|very (?:formal|informal)|formal|informal|casual|colloquial|neutral|polite|direct|indirect|simple"
    r"|simplified|shorter|longer|concise|literal|figurative|poetic|creative|idiomatic|slang|literary|active"
    r"|passive|inversion|inverted|reorder|rephras|reword|rewrit|paraphras|different|other (?:word|verb|noun)"
    r"|word order|past tense|present tense|future tense|tense|double negat|contra|implied|implies|conveys"
    r"|keeps|suggests|expresses|removed|added|omitted|dropped|exact|correct|similarity|score|confidence"
    r"|close|strong|weak|mild|subtle|alternative|variation|option|version|question form|rhetorical|british"
    r"|american|i (?:used|changed|replaced|swapped|kept)|(?:as|in) (?:a|an|the) \w+ (?:form|voice|tone|style"
    r"|question)|(?:formal|passive|active|informal)\w* \w+|now \w+ing|no longer|->|→|=)",
    "反义|同义|注|说明|解释|否定|替换|将|把|用|使用|更|书面|口语|正式|改变|强调|意思|直译|被动|丁寧|カジュアル|否定|置き換え|言い換え",
)
# How thinking aloud begins.
REASONING = compiled(
    r"(?:(?:okay|ok|alright|hmm+|well|so|now|first|then|next|also|but|wait|maybe|perhaps"
    r"|actually)[,.…!]* )*(?:let me (?!know)|let['’]s |i (?:need|have|should|must|want|could|might) to "
    r"|i (?:should|could|might|can|will) (?:write|use|say|try|think|rephrase|change|replace|start|negate"
    r"|make|produce|generate)|i['’]ll |i['’]m (?:going|asked|supposed) "
    r"|we (?:need|have|should|must|can|could)(?: to)? (?:write|produce|generate|create|make|output|give|say"
    r"|use|find|provide|rephrase|negate)|the (?:user|task|prompt|input|given sentence|original sentence"
    r"|instruction|question) (?:wants|asks|asked|says|gives|gave|means|requires"
    r"|is (?:to|asking|about|[\"“]))|my (?:task|job|goal)\b|to (?:create|generate|form|make|negate|rewrite"
    r"|paraphrase|find|write|express|produce|rephrase) (?:\w+ ){0,4}(?:sentence|antonym|synonym|opposite"
    r"|version|paraphrase|meaning|it\b)|(?:draft|thinking|thought|attempt|idea|candidate|brainstorm)(?:s"
    r"|ing)?\b ?(?:\d+ ?)?:|step \d+ ?:)",
    r"(?:hmm+|wait|okay, so|ok, so|alright, so)\b",
    "(?:嗯|好,|首先,?)?(?:用户(?:想|要|希望|让)|我(?:需要|应该)|让我(?:想|来|思)|思考|先想)",
)
# How the answer takes back what it has just said.
CORRECTION = compiled(
    r"(?:(?:hmm+|oh|ah|oops|no|sorry|well),? )*(?:oops|wait|hold on|scratch that|on second thoughts?"
    r"|correction\b|my mistake|i made an? (?:mistake|error)|let me (?:correct|fix|redo|revise|retry"
    r"|try (?:that )?again|start over)|(?:actually|sorry|apologies),? (?:that|this|the|i|it|let)\b"
    r"|that (?:one )?(?:keeps|copies|is (?:wrong|not))\b)",
    "等等|不对|更正|我(?:重新|再)(?:写|来)|抱歉,",
)
# What follows it is meant; what stands before it was a draft.
FINAL = compiled(
    r"^[#*_ \t>]*(?:(?:so|thus|therefore|here(?:['’]s| is| are)|and|now),? ?)?(?:the |my "
    r"|your )?final (?:answer|output|sentence|version|response|list|result|synonym|antonym|paraphrase"
    r"|rewrite|set|choice|candidate)s?\b[^\n:]{0,60}(?::|$)[*_ ]*",
    r"^[#*_ \t>]*(?:最终|最后的?)(?:答案|结果|句子|回答|版本)[^\n:]{0,20}(?::|$)[*_ ]*",
)
