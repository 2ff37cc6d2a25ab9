"""How models speak about what they write: patterns for remarks, reasoning and drafts."""

from __future__ import annotations

from llm_labeler._parse.phrases import compiled

# What speaks of sentences and their making, and not of what sentences speak of.
META = compiled(
    r"\b(?:synonym|antonym|paraphras|rephras|reword|rewrit|rewrote|negation|sentence|sinónim|antónim)",
    r"\b(?:same|original|opposite|similar|core|intended|overall) (?:meaning|idea|message|essence|sense"
    r"|sentiment"
    r"|thought)",
    r"\b(?:this|these|each|both|every|all|last|first|second|third) (?:\w+ )?(?:version|wording|phrasing"
    r"|variation|variant|option|alternative|phrase|verb|adjective|noun|adverb|word|statement|expression"
    r"|structure"
    r"|example)s?\b",
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
    r"|this\b|these\b"
    r"|original|using|uses?\b|used\b|with (?:the|an?) (?:word|verb|adjective|noun|phrase|synonym|antonym)"
    r"|by \w+ing\b"
    r"|emphasi|focus|more (?!than)|less (?!than)|slightly|very (?:formal|informal)|formal|informal|casual"
    r"|colloquial"
    r"|neutral|polite|direct|indirect|simple|simplified|shorter|longer|concise|literal|figurative|poetic"
    r"|creative"
    r"|idiomatic|slang|literary|active|passive|inversion|inverted|reorder|rephras|reword|rewrit|paraphras"
    r"|different"
    r"|other (?:word|verb|noun)|word order|past tense|present tense|future tense|tense|double negat|contra"
    r"|implied"
    r"|implies|conveys|keeps|suggests|expresses|removed|added|omitted|dropped|exact|correct|similarity"
    r"|score|confidence"
    r"|close|strong|weak|mild|subtle|alternative|variation|option|version|question form|rhetorical|british"
    r"|american"
    r"|i (?:used|changed|replaced|swapped|kept)|(?:as|in) (?:a|an|the) \w+ (?:form|voice|tone|style|question)"
    r"|(?:formal|passive|active|informal)\w* \w+|now \w+ing|no longer|->|→|=)",
    "反义|同义|注|说明|解释|否定|替换|将|把|用|使用|更|书面|口语|正式|改变|强调|意思|直译|被动|丁寧|カジュアル|否定|置き換え|言い換え",
)
# How thinking aloud begins.
REASONING = compiled(
    r"(?:(?:okay|ok|alright|hmm+|well|so|now|first|then|next|also|but|wait|maybe|perhaps|actually)[,.…!]* )*"
    r"(?:let me (?!know)|let['’]s |i (?:need|have|should|must|want|could|might) to |i (?:should|could"
    r"|might|can|will) "
    r"(?:write|use|say|try|think|rephrase|change|replace|start|negate|make|produce|generate)|i['’]ll "
    r"|i['’]m (?:going|asked"
    r"|supposed) |we (?:need|have|should|must|can|could)(?: to)? (?:write|produce|generate|create|make"
    r"|output|give|say|use"
    r"|find|provide|rephrase|negate)|the (?:user|task|prompt|input|given sentence|original sentence"
    r"|instruction"
    r"|question) (?:wants|asks|asked|says|gives|gave|means|requires|is (?:to|asking|about|[\"“]))"
    r"|my (?:task|job|goal)\b"
    r"|to (?:create|generate|form|make|negate|rewrite|paraphrase|find|write|express|produce|rephrase) "
    r"(?:\w+ ){0,4}(?:sentence|antonym|synonym|opposite|version|paraphrase|meaning|it\b)"
    r"|(?:draft|thinking|thought|attempt|idea|candidate|brainstorm)(?:s|ing)?\b ?(?:\d+ ?)?:|step \d+ ?:)",
    r"(?:hmm+|wait|okay, so|ok, so|alright, so)\b",
    "(?:嗯|好,|首先,?)?(?:用户(?:想|要|希望|让)|我(?:需要|应该)|让我(?:想|来|思)|思考|先想)",
)
# How the answer takes back what it has just said.
CORRECTION = compiled(
    r"(?:(?:hmm+|oh|ah|oops|no|sorry|well),? )*"
    r"(?:oops|wait|hold on|scratch that|on second thoughts?|correction\b|my mistake"
    r"|i made an? (?:mistake|error)"
    r"|let me (?:correct|fix|redo|revise|retry|try (?:that )?again|start over)"
    r"|(?:actually|sorry|apologies),? (?:that|this|the|i|it|let)\b"
    r"|that (?:one )?(?:keeps|copies|is (?:wrong|not))\b)",
    "等等|不对|更正|我(?:重新|再)(?:写|来)|抱歉,",
)
# What follows it is meant; what stands before it was a draft.
FINAL = compiled(
    r"^[#*_ \t>]*(?:(?:so|thus|therefore|here(?:['’]s| is| are)|and|now),? ?)?(?:the |my "
    r"|your )?final (?:answer"
    r"|output|sentence|version|response|list|result|synonym|antonym|paraphrase|rewrite|set|choice"
    r"|candidate)s?\b"
    r"[^\n:]{0,60}(?::|$)[*_ ]*",
    r"^[#*_ \t>]*(?:最终|最后的?)(?:答案|结果|句子|回答|版本)[^\n:]{0,20}(?::|$)[*_ ]*",
)
