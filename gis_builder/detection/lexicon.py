"""Codes of words and phrases, which turn a sentence into a string of codes.

Phrases are tried before single words, in this order, and match whole words. A blank in a phrase matches a run
of blanks with at most one line break. `languages` has the phrases of other languages.
"""

from __future__ import annotations

import re
from enum import StrEnum
from textwrap import dedent


class Code(StrEnum):
    """The meaning of a token, in one letter, so that regular expressions can match sentences of codes."""

    REFERENCE = "R"  # #12, a link to an issue, "issue 12"
    DUPLICATE = "D"  # the noun: dup, dupe, /duplicate, duplikat
    DUPLICATES = "d"  # the verb in the present, the plural: duplicates, dupes
    DUPLICATED = "Z"  # the verb in the past: duplicated
    HAS_DUPLICATES = "n"  # has many duplicates
    FAVOUR = "F"  # in favour of, superseded by, continued in
    MOVED = "m"  # merged into, moved to
    COVERS = "f"  # supersedes, covers, tracks
    TRACKED = "K"  # tracked in, covered by
    PART_OF = "P"  # part of, subsection of
    REPORTED = "A"  # already reported, reported as
    SAME_AS = "S"  # same issue as, identical to
    SAME = "s"  # the same issue
    SIMILAR_TO = "l"  # very similar to
    THIS = "T"  # this issue: this, it, that's
    THAT_ONE = "O"  # an issue named before: that one, the above, ^
    CORRECTION = "c"  # I meant, make that
    IS = "V"  # is, was, becomes
    NOT = "N"  # isn't, don't, never
    MAYBE = "H"  # seems, I think, looks like
    IF = "I"  # a condition or request: if, whether, please
    UNDECIDED = "Q"  # hard to tell, who knows
    YES = "Y"  # indeed, agreed, you're right
    NO = "B"  # no, as an answer: nope, no it isn't
    THANKS = "y"  # surprise, thanks or regret: oh, thanks, sorry
    CLOSE = "C"  # closing, closed
    REOPEN = "U"  # reopening
    KEEP_OPEN = "k"  # leave this open, won't close
    JOKE = "j"  # just kidding, /s
    FIXED = "X"  # fixed or not a bug: works now, by design
    RELATED = "L"  # similar, linked
    DIFFERENT = "E"  # unrelated, has nothing to do with
    SEARCH = "G"  # find, looked
    ALSO = "M"  # additionally
    WHICH = "W"  # relative pronouns: which, whose
    SEE = "e"  # cf, check, per
    OF = "o"  # of, to, with
    BY = "b"  # by, in, at
    AS = "a"  # as, als
    ARTICLE = "x"  # a, the, one
    ISSUE = "i"  # issue, bug, report
    FILLER = "J"  # words without meaning here: just, basically, now
    AND = "&"  # and, or, plus, +
    COMMA = ","  # comma, colon, bracket, line break
    QUESTION = "?"  # ?
    WORD = "w"  # any other word
    STOP = "."  # between sentences


_NAME = re.compile(r"[A-Z][A-Z_]+")


def code_pattern(pattern: str, codes: type[StrEnum] = Code) -> re.Pattern[str]:
    """Compile a regular expression written with names of codes and blanks between them."""
    return re.compile(_NAME.sub(lambda name: re.escape(codes[name[0]]), pattern).replace(" ", ""))


def has_any(text: str, stems: tuple[str, ...]) -> bool:
    """Whether the text contains one of the stems."""
    for stem in stems:  # noqa: SIM110 - a generator takes twice the time
        if stem in text:
            return True
    return False


def entries(table: str) -> list[tuple[str, list[str]]]:
    """The entries of a table: a line and the indented lines below it; `# ` begins a comment."""
    found: list[tuple[str, list[str]]] = []
    for line in dedent(table).strip().splitlines():
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        elif not line.startswith("# "):
            found.append((line, []))
    return found


_WORDS_BY_CODE = """
    DUPLICATE duplicate dup dupe duplicat duplikát dublett dubblett
    DUPLICATES duplicates dups dupes dup's
    DUPLICATED duplicated duped dupped dup'd dupe'd
    COVERS supersedes superseeds supercedes supersede subsumes subsume covers captures encompasses tracks
    THIS this it it's its this's mine these thats
    IS is was are be being been were becomes remains
    NOT not n't isn't isnt wasn't aren't don't dont doesn't doesnt didn't didnt wouldn't never neither
        cannot can't cant couldn't no hardly despite disagree doubt unlikely
    MAYBE maybe probably possibly possible potentially potential might may could perhaps likely presumably
        apparently seems seem seemed appears appear sounds suspect suspected guess think believe assume
        presume imagine suspiciously looks look would wonder wondering arguably semi quasi near almost
        partial partially kinda
    IF if whether unless until should please
    CLOSE closing closed close closes
    REOPEN reopen reopening reopened re-opening re-opened re-open
    FIXED fixed fixes fix fixing resolved resolves resolve solved solves solve landed merged implemented
        works working repaired addressed done
    RELATED related relates similar relevant linked connected reminiscent resembles related-to
    DIFFERENT different differs differ difference distinct separate unrelated independent orthogonal
        otherwise
    YES yes yep yeah yup ya yea indeed right agreed agree correct confirmed confirm exactly sure true
        definitely
    THANKS oops whoops woops ah oh d'oh doh ack sorry aha ok okay dang damn argh hah gah bah aw aww shoot
        thanks thank thx ty
    NO nah nope
    SEARCH find search searched searching searches look-up looked
    ALSO also additionally too moreover
    WHICH which whose
    SEE see cf check per ref follow
    OF of to with against with: from av af
    BY by in at on under into through via over here there
    AS as
    ARTICLE a an the another yet one our my
    ISSUE issue issues bug bugs ticket tickets report reports problem request thread thing ice crash item
        topic feature-request regression
    FILLER just basically essentially really again actually effectively simply clearly obviously certainly
        surely pretty much very already then now so thus therefore hence still exact same-ish only i'm am i
        i'd i'll i've we we'll gonna going instead anyway more-or-less technically in-fact afaik afaict
        iirc imo imho
    AND and or plus as-well-as
"""
WORDS = {
    word: Code[code]
    for head, lines in entries(_WORDS_BY_CODE)
    for code, *words in [" ".join([head, *lines]).split()]
    for word in words
}

_THING = (
    r"(?:issues?|bugs?|problems?|things?|tickets?|reports?|requests?|root[-\s](?:cause|issue|problem)|cause"
    r"|crash|ice|defect|regression|questions?|topic|feature(?: request)?|underlying \w+|idea|proposal"
    r"|suggestion|discussion|case|title)"
)
_SAME = (
    r"(?:the |exact(?:ly)? |very ){0,4}same"
    r"(?: exact| underlying| basic| core| general| known| old| fundamental| kind of| type of)?"
)
_SAME_THING = (
    rf"{_SAME} {_THING}(?: here)?(?: (?:that|which) (?:was|is|has been) (?:reported|described)| as| that"
    r"| reported| described| in| like| with)(?: in| as| what| with)?"
)
_BE_SURE = r"(?:sure|certain|positive|confident)"
_INTO = r"(?:to|into|in to|with|under|over to)"
_WITHIN = r"(?:by|in|at|under|on|as|over in|over at|with|here|there|through|via|elsewhere|at least in)"
_TALK = r"(?:discussion|conversation|issue|bug|work)"
_EARLIER = (
    r"(?:that|the (?:other|linked|above|mentioned|former|latter|original|older|newer|earlier|previous|first"
    r"|upstream|existing|referenced|parent))"
)
_PAUSE = r"(?=\s*(?:[.!,;()]|\Z))"
_NOT_DO = r"(?:doesn'?t|don'?t|didn'?t|not)"
_MAYBE = r"(?:maybe|perhaps|possibly)"
_MANY = (
    r"(?:many|several|lots of|a lot of|tons of|plenty of|a few|some|numerous|multiple|enough|a number of"
    r"|a couple of|a bunch of|various)"
)
_BAD_NAME = r"(?:key|entry|entries|symbol|constraint|column|row|record|index|primary key|unique key)"
_MESSAGE = r"(?:error|exception|violation|warning|message|panic|assertion|definition)"


def _phrase_table(table: str) -> tuple[tuple[Code, str], ...]:
    """Parse entries that begin with a code; the rest is the pattern."""
    heads = ((head.partition(" "), lines) for head, lines in entries(table))
    return tuple((Code[code], pattern + "".join(lines)) for (code, _, pattern), lines in heads)


PHRASES = _phrase_table(rf"""
    # exceptions: "duplicate key", jokes, issues that stay open
    WORD (?:duplicate|dup)(?: of)? \x01\x02*+(?= {_BAD_NAME}(?!\w))
    WORD (?:duplicates?|dups?|dupes?)(?=["'`]?\s?[:=]\s?(?:["'`\[{{0-9]|true|false|null|none|error|warn))
    WORD (?:the|that|these) (?:duplicate|dup)(?: of)? \x01\x02*+(?= {_MESSAGE}s?(?!\w))
    JOKE (?:just |only |i'?m )?(?:kidding|joking)|j/k|as a joke|april fools?'?|sarcasm|trollface|troll
    JOKE (?<![\w/.])/s(?:arcasm)?(?=\s*\Z|\s*\n)
    JOKE (?:everything|anything|every (?:bug|issue)|all (?:bugs|issues))(?:'s| is| are)
        (?= (?:\w+ )?(?:a )?dup)
    KEEP_OPEN (?:(?:leav(?:e|ing)|keep(?:ing)?|left|kept) (?:(?:this|it)(?: \w+)? |the (?:issue|bug
        |ticket) )|(?:but|though|so) (?:\w+ )?(?:leav(?:e|ing)|keep(?:ing)?) )open(?! \x01)
    KEEP_OPEN (?:this|it)(?: \w+)? (?:stays?|remains?) open
    KEEP_OPEN (?:(?:wo|does)n'?t|(?:wi|sha)ll not|not going to|let'?s not|not(?: \w+)? (?:ready|want) to
        |rather not|hesitant to|reluctant to) clos(?:e|ing) (?:this|it)
    HAS_DUPLICATES (?:has|have|had|are|got|gets) (?:already |so |now )?{_MANY} (?:\w+ )?
        (?:duplicates|dupes|dups)(?: already| filed| reported| of (?:this|it))?
    DUPLICATE (?<![\w/.])/(?:triage )?(?:duplicate|dupe?)
    DUPLICATE (?:dup|dupe|duplicate) for(?= (?:issue |bug )?\x01)
    DUPLICATE double[-\s](?:filing|filed|post(?:ed|ing)?|report(?:ed)?|submission)
    DUPLICATE (?:de-?)?dup(?:e|p?ing) (?:this|it|that)(?: one| issue)? (?:to|into|of|against|with)
    DUPLICATE (?:been )?(?:opened|filed|reported|posted|submitted) twice|(?:a|the) duplication(?= of)
        |(?<![\w/]\s)(?<!/)duplication(?= of (?:issue |bug )?\x01)
        |re-?posted (?:my own|my|the same) (?:issue|bug|report)
    # in favour of another
    FAVOUR in (?:fav(?:ou?|uo)r(?:ite)?|lieu|preference)(?: of| to)?
    FAVOUR (?:super[cs]ee?d(?:ed|ing)|subsumed|obsoleted|encompassed|absorbed) (?:by|in|{_INTO})
    FAVOUR replac(?:ed|ing) (?:by|with)|discuss (?:this |it )?(?:further )?(?:on|in|at|under)
    COVERS (?:has |have )?super[cs]ee?ded(?= this)
    FAVOUR redundant (?:with|to|given)|clos(?:ed|ing) (?:this )?for(?=\s?\x01)
    FAVOUR direct (?:all |any )?(?:further |future )?(?:discussion|comments|feedback)s? (?:there|to|here)
    MOVED (?:merg(?:ed?|ing)|fold(?:ed|ing)?|roll(?:ed|ing)|consolidat(?:ed?|ing)|mov(?:ed|ing)
        |punt(?:ed|ing)) (?:over )?{_INTO}
    MOVED (?:merg(?:e|ing)|fold(?:ing)?|roll(?:ing)?|consolidat(?:e|ing)|mov(?:e|ing))
        (?: (?:this|it|the|that|all|further))?(?: {_TALK})? {_INTO}
    FAVOUR (?:because|since|as)(?=\s?(?:\x01\x02*+|that one|the other(?: one)?)\s
        (?:has|have|contains?|is|got) (?:a lot |much )?(?:more|better))
    TRACKED fall(?:s|ing)? under(?: the (?:purview|jurisdiction|scope|umbrella) of)?
    FAVOUR let'?s (?:all |just |please )?(?:move|go|switch|head|hop|jump
        |take (?:this|it)) (?:this |it )?(?:over )?(?:to|in|into)(?= (?:the |issue |bug )?\x01)
    FAVOUR let'?s (?:\w+ )?(?:keep|have|hold|discuss|talk|consolidate|centrali[sz]e|follow(?: up| along)?
        |track|carry on) (?:(?:this|it|that|the|all|any|further|everything) )?(?:{_TALK} )?(?:about (?:this
        |it) )?(?:over )?(?:in|on|at|under|to)(?= (?:the |issue |bug )?\x01)
    FAVOUR let'?s (?:just )?(?:use|go with|stick with)(?= \x01\x02*+ (?:for|instead))|(?:use|follow)
        (?= \x01\x02*+ instead)
    FAVOUR continu(?:e|es|ed|ing) (?:(?:this|the|that|it) )?(?:{_TALK} )?{_WITHIN}
    # tracked or reported elsewhere
    TRACKED (?:being |better |also |all |currently |already |now ){{0,4}}(?:track(?:ed|ing)?
        |cover(?:ed|ing)?|captured)(?: (?:this|it|that|them))?(?: \w+ly| more \w+| better)? {_WITHIN}
    COVERS (?:already |now )?(?:tracking|covering|handling)(?= (?:this|it|that)(?!\w))
    COVERS (?:can|will|would|should|does) (?:also )?(?:cover|track|replace)(?= (?:this|it|that)(?!\w))
    COVERS replaces?(?= this(?!\w))
    TRACKED a (?:much |far |probably )?better (?:description|report|issue|summary|explanation|place
        |home) (?:of|for) (?:this|it|the)(?: \w+)?
    REPORTED (?:opened|filed|created)(?= \x01\x02*+ (?:to|which) (?:cover|track)s? (?:this|it)(?!\w))
    REPORTED re-?(?:filed|opened|posted) as(?=\s\x01)
    TRACKED (?:an? )?sub-?(?:issue|bug|case) of
    TRACKED now (?:over )?(?:under|at)|follow(?=\s?\x01)
    TRACKED (?:track(?:ing|ed)?|tracker) (?:issue|bug|ticket)
        (?: (?:for (?:this|it|that)|is|here|being)){{0,3}}
    REPORTED (?:already|previously) (?:been )?(?:\w+ly )?(?:report\w*|filed|open(?:ed)?|exist\w*|known
        |request\w*|raised|an? (?:\w+ )?(?:issue|bug|ticket|report|request)|have|has|being|on file
        |submitted|logged|there|noted|recorded)
    REPORTED (?:reported|filed|opened|submitted) (?:this|it)(?: already| earlier| before)? (?:as|in|at|under)
    REPORTED (?:is|was|that'?s) (?:already )?(?:reported|filed|logged|registered) (?:as|in|at|under)
    REPORTED there(?:'?s| is| was) (?:already|also already)(?=[\s:(]{{1,3}}\x01)|already(?=\s?\x01)
    REPORTED known (?:issue|bug|problem|limitation)|open (?:issue|bug|ticket) already
    REPORTED (?:already|previously) (?:mentioned|discussed|described) (?:this|it) (?:in|at|on|under)
    REPORTED (?:already|previously|being|(?:was|been)(?= (?:answered|asked|raised))) (?:been )?
        (?:answered|asked|discussed|raised|brought up)(?: before| already)?(?: over)? (?:in|at|under)
        (?= (?:issue |bug )?\x01)
    REPORTED (?:have|got)(?= \x01\x02*+ (?:for (?:this|that|it)|open|already)(?!\w))
    REPORTED (?:reported|filed|requested) (?:earlier|before)(?: as| in)?(?= \x01)
    TRACKED (?:existing|outstanding) (?:discussion|issue|bug|ticket|report)
        (?: (?:is|at|in|on|over|about this)){{0,3}}
    PART_OF (?:sub-?section|part|portion|piece|aspect) of
    REPORTED open(?: already)?(?: issue| bug| ticket)? (?:about|for) (?:this|it)
    TRACKED (?:discussing|talking about) (?:this|it|that)(?: already)? {_WITHIN}(?= \x01)
    REPORTED been (?:report\w*|filed|request\w*|raised|submitted)
    # the same
    SAME_AS {_SAME_THING}
    SAME_AS (?:the )?(?:exact )?same (?:as|like|with)(?: in)?|exactly (?:like|as in)
    SAME_AS (?:identical|equivalent) (?:to|with)
    SAME_AS (?:(?:yet )?another|one more) (?:instance|case|example|occurrence|manifestation|incarnation) of
    SAME_AS (?:an? |the )?(?:instance|manifestation|incarnation|special case) of
    SAME_AS (?:just )?an?(?: \w+ly)? \w+ (?:case|variant) of
    SAME_AS (?:an? |the )?(?:exact )?(?:re-?post|repeat|subset|copy(?= of (?:issue )?\x01)) of
    SAME {_SAME} {_THING}
    SAME one and the same
    # an issue named before
    THAT_ONE {_EARLIER} (?:one|issue|bug|ticket|report|thread)
    THAT_ONE (?:the one|what) (?:above|mentioned|linked|@?\w+ (?:mentioned|linked|pointed(?: to)?|cited
        |referenced))
    THAT_ONE (?:the|those|these) (?:\w+ )?(?:issues?|bugs?|tickets?) (?:above|mentioned|linked)
    THAT_ONE those(?: \w+)? (?:issues|bugs|tickets|ones)|(?:those|them){_PAUSE}
    THAT_ONE (?:those|these|the) two{_PAUSE}|both(?: of (?:them|those|these))?{_PAUSE}
    THAT_ONE that(?=\s*(?:[.!,;()]|\Z|instead|then|as well|for|and|too|since|because))
    THAT_ONE (?:the )?above(?=\s*(?:[.!,;:)]|\Z))
    IS (?:describes|reports)(?= (?:\w+ly )?the same)
    # sure, unsure, undecided
    FILLER (?:i(?:'m| am) )?(?:pretty|quite|fairly|rather|almost|very) {_BE_SURE}(?: that)?
    FILLER i(?:'m| am) {_BE_SURE}(?: that)?
    FILLER no doubt|in effect|in fact|in essence|more or less|of course|for now|at this point
    UNDECIDED (?:can(?:no|')t|cannot|hard to|impossible to|no way to|unable to) (?:tell|say|know|decide)
    UNDECIDED i (?:\w+ )?thought(?= [^.\n]{{0,60}}\bbut\b)
    UNDECIDED (?:let (?:me|us) know|tell (?:me|us)|check|verify) (?:if|whether)
        (?= (?:this|it)(?!\w)[^.\n]{{0,30}}(?:dup|same))
    UNDECIDED (?:will |'ll )?never know|depending on how you look|opinions differ|no idea|not sure
    UNDECIDED one of (?:the |those |these )?(?:two|them|both){_PAUSE}
    UNDECIDED {_MAYBE}(?= [^.?!\n]{{0,60}}[,;] {_MAYBE})|maybe (?:not|it isn't|it is not)
    CORRECTION i meant(?: to (?:say|write|link))?|make that|correction
    CORRECTION (?:should (?:be|read|have been)|meant to be)(?= ?\x01)
    NO (?:i )?(?:don'?t|do not) (?:think|believe) so|i doubt (?:it|that){_PAUSE}
    NO no,? it (?:isn'?t|is not|doesn'?t)
    NO (?:actually|hmm*|er|wait|oh),? (?:no|not|never ?mind)(?=\s*(?:[,.;:!]|\Z| me))
    NO scratch that|i (?:take|took) (?:it|that) back|i (?:was|am|could be) (?:wrong|mistaken)
    NO not (?:really|quite|exactly)(?=\s*(?:[,.;:!]|\Z))|no(?=\s*[,.;:!-])
    YES (?:seems|looks|sounds|appears) (?:so|right|correct|like it)|(?:i )?(?:think|believe) so
    YES you(?:'re| are) right|that'?s (?:it|right|the one|correct)|makes sense
    YES it is indeed|so it (?:is|does|seems)
    MAYBE (?:looks?|sounds?|feels?|smells?) (?:a lot |very much |much |quite |suspiciously |rather )?like
    MAYBE not (?:entirely |100% |quite |really |so |very |totally )?(?:sure|certain|clear|convinced)
    UNDECIDED nominat(?:e|ed|es|ing)(?= (?:\w+ ){{0,3}}clos)
    MAYBE (?:propos|suggest|recommend|vot)(?:e|es|ed|ing|s)?(?= (?:for |to |that )?(?:\w+ ){{0,3}}clos)
    MAYBE may be|could be|can be|don'?t know|may or may not(?: be)?|(?:seems?|appears?) to be
    # fixed or not a bug
    FIXED works? (?:now|fine|for me|correctly|as expected|on)|(?:compiles?|builds?) (?:now|fine|for me)
        |now (?:works|compiles|builds)
    FIXED can(?:no|')t (?:reproduce|repro)|(?:unable|not able|failed) to (?:reproduce|repro)|no(?:-| )repro
    FIXED (?:doesn'?t|not|don'?t|no longer) (?:\w+ )?(?:reproduces?|repro|occurs?|happens?|crash(?:es)?
        |fails?|ices?)
    WORD (?:to )?be done
    FIXED has been (?:fixed|implemented|resolved|addressed)|closed (?:by|in(?! fav| pref| lieu))
    FIXED (?:don'?t|do not) (?:think|believe) (?:that )?(?:this|it)(?:'?s| is) (?:really |actually )?a bug
    FIXED not[-\s]a[-\s]bug|working as intended|by design|expected behaviou?r|as (?:expected|intended
        |designed)
    FIXED won'?t ?fix|no longer (?:relevant|applies|an issue|a problem|valid|needed)|moot|out of date|obsolete
    # different, not, similar
    DIFFERENT not the same|different \w+ (?:than|from|to)|has nothing to do with|nothing to do with|other than
    NOT no longer|far from|(?:only|just) close to(?: being)?|rather than|instead of
    NOT {_NOT_DO} (?:\w+ )?(?:seem|look|sound|appear|think|believe)(?: like| to be)?
    SIMILAR_TO (?:very |really |quite |so |pretty |extremely )?similar (?:issue |problem |bug )?(?:to|as|with)
    SIMILAR_TO (?:nearly|almost|virtually|practically) (?:identical|the same)(?: (?:to|as|with))?
    RELATED (?:some|any)thing (?:like|similar)|much like|similar(?:ly)? (?:to|as)|reminds me of
    # thanks and apologies
    THANKS good (?:catch|find|call|point)|my bad|i (?:must have )?missed|searched for|did search
    THANKS did(?:n'?t| not) (?:see|find|notice|realize|realise|know)
""")

SIGNS: tuple[tuple[Code, str], ...] = (
    (Code.THAT_ONE, r"\^+(?:\s?-+)?|👆|☝️?"),
    (Code.YES, r":\+1:|\+1\b|👍"),
    (Code.JOKE, r"🙄|🤡|😜"),
)
