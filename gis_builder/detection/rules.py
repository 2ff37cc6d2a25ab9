"""The rules: patterns over strings of codes, each with an example sentence.

A pattern is a regular expression in which names of `lexicon.Code` match tokens; `.` is any token. Its groups:

- `marker`: the words of the claim; if markers overlap, the earlier rule wins
- `targets`: the references to the claimed originals
- `subject`: references to the claimed duplicates, if the claim isn't about this issue
- `reversed`: the words that make this issue the original: "#1 is a dup of *this*"

Every pattern spans a bounded number of tokens, so that matching takes linear time.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from gis_builder.detection.lexicon import code_pattern


class ClaimKind(StrEnum):
    """The kind of relation that a claim states."""

    DUPLICATE = "duplicate"  # "dup of #1"
    FAVOUR = "favour"  # "in favour of #1", "superseded by #1"
    SAME = "same"  # "same issue as #1", "this is #1"
    TRACKED = "tracked"  # "already reported in #1", "tracked in #1"


class ClaimRule(NamedTuple):
    """One pattern that makes a claim."""

    example: str
    pattern: str
    points_back: bool = False  # "dup of that one"
    opens_list: bool = False  # "a dup of these issues:"
    corrects: bool = False  # "I meant #2"
    must_close: bool = False  # counts only beside words of closing: "very similar to #1, closing"
    is_open_question: bool = False  # "how does this differ from #1?"


# Shared parts of patterns, by name.
_SHORTHANDS = {
    "TARGETS": "(?P<targets>REFERENCE)",
    "SUBJECT": "(?P<subject>REFERENCE)",
    "IS_OR_SEEMS": (  # "is", "was closed as", "seems to be"
        "(?:[IS FILLER ALSO MAYBE AS ARTICLE WORD SEE CLOSE COMMA]{0,4} IS "
        "[IS FILLER ALSO MAYBE AS ARTICLE WORD CLOSE]{0,5})"
    ),
    "NOT_BY_THE_WAY": (  # "unrelated to #1, dup of #2" has no claim about #1
        "(?<![DIFFERENT RELATED SIMILAR_TO FIXED])(?<![DIFFERENT RELATED SIMILAR_TO FIXED] [OF BY])"
    ),
}
_SHORTHAND = re.compile("|".join(_SHORTHANDS))

_DUPLICATES = (
    # The target comes before the marker.
    ClaimRule(
        "That is #1, of which this is a dup.",
        r"TARGETS COMMA{0,4} OF WHICH COMMA? THIS? [^REFERENCE DUPLICATE FAVOUR QUESTION]{0,5}? "
        r"(?P<marker>DUPLICATE) (?!ISSUE? OF)",
    ),
    ClaimRule(
        "There is #1, which this is a dup of.",
        r"TARGETS COMMA{0,4} WHICH [^REFERENCE DUPLICATE FAVOUR QUESTION]{0,4}? THIS [^REFERENCE "
        r"DUPLICATE FAVOUR QUESTION]{0,4}? (?P<marker>DUPLICATE) OF (?!ISSUE? REFERENCE)",
    ),
    ClaimRule(
        "#1 is a dup of this, but closing this one.",
        r"TARGETS [IS ALSO MAYBE] ARTICLE? [FILLER MAYBE]? (?P<marker>DUPLICATE) OF THIS (?=.{0,24} "
        r"CLOSE [FILLER ARTICLE ALSO]{0,2} THIS)",
    ),
    # Another issue is said to be a duplicate.
    ClaimRule(
        "#1 duplicates this.",
        r"SUBJECT [^REFERENCE DUPLICATE FAVOUR SAME_AS TRACKED QUESTION IF NOT]{0,5}? "
        r"(?P<marker>DUPLICATES) (?P<reversed>THIS)",
    ),
    ClaimRule(
        "See #1, which is a dup of #2.",
        r"SUBJECT COMMA? WHICH [^REFERENCE DUPLICATE FAVOUR]{0,7} (?P<marker>[DUPLICATE DUPLICATED]) "
        r"ISSUE? [COMMA OF]{0,2} [ARTICLE FILLER ISSUE WORD]{0,3} TARGETS",
    ),
    ClaimRule(
        "#1 was closed as a duplicate of #2.",
        r"SUBJECT COMMA? (?:WHICH COMMA?)? IS_OR_SEEMS (?P<marker>[DUPLICATE DUPLICATED]) ISSUE? "
        r"[COMMA OF]{0,2} [ARTICLE FILLER ISSUE WORD]{0,3} TARGETS",
    ),
    ClaimRule(
        "#1 is a duplicate of this.",
        r"SUBJECT COMMA? (?:WHICH COMMA?)? [IS FILLER ALSO MAYBE AS ARTICLE WORD CLOSE COMMA]{0,6} "
        r"(?P<marker>[DUPLICATE DUPLICATED]) ISSUE? OF [ARTICLE FILLER ISSUE]{0,2} (?P<reversed>[THIS "
        r"THAT_ONE]) (?!ISSUE? COMMA? REFERENCE)",
    ),
    ClaimRule(
        "Closing #1 as a dup of #2.",
        r"CLOSE [ARTICLE ISSUE FILLER]{0,2} SUBJECT COMMA? [ALSO WORD]? AS ARTICLE? FILLER? "
        r"(?P<marker>DUPLICATE) ISSUE? OF [ARTICLE FILLER ISSUE]{0,2} (?:TARGETS | (?P<reversed>[THIS "
        r"THAT_ONE]))",
    ),
    ClaimRule(
        "There is also #1 (dup of #2).",
        r"NOT_BY_THE_WAY SUBJECT COMMA? [FILLER ALSO AS]{0,2} ARTICLE? (?P<marker>DUPLICATE) OF "
        r"TARGETS",
    ),
    ClaimRule(
        "I see that #1 duplicates #2.",
        r"(?<![THIS IS MAYBE FILLER]) SUBJECT [FILLER ALSO]? (?P<marker>DUPLICATES) TARGETS",
    ),
    ClaimRule(
        "Duplicates: #1",
        r"(?P<marker>DUPLICATES) COMMA{1,2} SUBJECT",
    ),
    # The target comes after the marker.
    ClaimRule(
        "A dup of the old bug #1.",
        r"(?P<marker>DUPLICATE) ISSUE? [FILLER DIFFERENT]? COMMA? OF [^DUPLICATE FAVOUR SAME_AS "
        r"TRACKED FIXED REFERENCE RELATED DIFFERENT QUESTION]{0,9}? TARGETS",
    ),
    ClaimRule(
        "They are dups; close the duplicate of this.",
        r"(?P<marker>DUPLICATE) ISSUE? OF [ARTICLE FILLER]? (?P<reversed>THIS)",
    ),
    ClaimRule(
        "A dup of that one.",
        r"(?P<marker>DUPLICATE) ISSUE? OF ARTICLE? THAT_ONE",
        points_back=True,
    ),
    ClaimRule(
        "Dup: #1",
        r"(?P<marker>DUPLICATE) ISSUE? [COMMA ARTICLE]{0,3} SEE? [ARTICLE ISSUE COMMA]{0,2} TARGETS",
    ),
    ClaimRule(
        "重複です #1",
        r"(?P<marker>DUPLICATE) FILLER{1,2} COMMA? SEE? TARGETS",
    ),
    ClaimRule(
        "This has many duplicates (e.g. #1), closing.",
        r"(?<![REFERENCE THAT_ONE]) (?P<marker>HAS_DUPLICATES) [^REFERENCE DUPLICATE FAVOUR SAME_AS "
        r"QUESTION]{0,5}? TARGETS",
        must_close=True,
    ),
    ClaimRule(
        "It's a dup, for the cause see #1.",
        r"(?P<marker>DUPLICATE) ISSUE? (?:(?:IS WORD)? COMMA [^REFERENCE DUPLICATE FAVOUR SAME_AS "
        r"TRACKED FIXED RELATED DIFFERENT QUESTION]{0,4})? SEE [ARTICLE ISSUE OF COMMA FILLER]{0,3} "
        r"TARGETS",
    ),
    ClaimRule(
        "This duplicates #1.",
        r"(?:^ | (?<=THIS) | (?<=[THIS FILLER] FILLER) | (?<=COMMA) | (?<=THIS MAYBE) | (?<=THIS [WORD "
        r"FILLER])) (?P<marker>DUPLICATES) ARTICLE? ISSUE? COMMA? TARGETS",
    ),
    ClaimRule(
        "Duplicated, as it were, by #1.",
        r"(?P<marker>DUPLICATED) [^REFERENCE DUPLICATE FAVOUR FIXED QUESTION]{0,8}? [BY OF] ARTICLE? "
        r"ISSUE? TARGETS",
    ),
    ClaimRule(
        "与 #1 重复",
        r"TARGETS WORD{0,3} (?P<marker>DUPLICATE) (?!ISSUE? [OF REFERENCE SEE])",
    ),
    ClaimRule(
        "A dup of issues like:",
        r"(?P<marker>DUPLICATE) OF ARTICLE? [FILLER WORD]{0,2} ISSUE [^REFERENCE QUESTION]{0,3} COMMA "
        r"$",
        opens_list=True,
    ),
    # No target near the marker; excludes "duplicate code", "the duplicate symbol", "disallow duplicate keys".
    ClaimRule(
        "Looks like a dupe, thanks.",
        r"(?:^ | (?<=[ARTICLE AS IS FILLER THIS CLOSE YES AND ALSO COMMA MAYBE NOT WORD OF ISSUE "
        r"REFERENCE QUESTION THANKS])) (?<![BY OF] ARTICLE) (?P<marker>DUPLICATE) (?=ISSUE? (?:[COMMA "
        r"QUESTION FILLER AND ALSO THIS] | $ | CLOSE THIS | WORD{0,5} CLOSE | YES | THANKS | "
        r"BY DUPLICATE) | (?<!WORD DUPLICATE) ISSUE? WORD $)",
    ),
    ClaimRule(
        "Closing this as a dup since it was known.",
        r"CLOSE [^REFERENCE DUPLICATE FAVOUR NOT QUESTION]{0,4} AS ARTICLE? (?P<marker>DUPLICATE)",
    ),
    ClaimRule(
        "It is not a duplicate strictly speaking.",
        r"NOT [^COMMA AND REFERENCE CLOSE]{0,4}? ARTICLE (?P<marker>DUPLICATE) (?=[WORD FILLER]{0,4} "
        r"$)",
    ),
    ClaimRule(
        "Sorry, I meant #1.",
        r"(?P<marker>CORRECTION) [COMMA ARTICLE FILLER ISSUE]{0,2} TARGETS",
        corrects=True,
    ),
)

_FAVOURS = (
    ClaimRule(
        "#1 was closed in favour of #2.",
        r"(?<!FIXED [BY OF WORD]) SUBJECT [IS FILLER ALSO MAYBE CLOSE ARTICLE AS WORD COMMA]{0,5} "
        r"(?P<marker>FAVOUR) [ARTICLE FILLER ISSUE]{0,2} (?:TARGETS | (?P<reversed>THIS))",
    ),
    ClaimRule(
        "#1 says more, closing this in favour of it.",
        r"TARGETS [^QUESTION]{0,12} CLOSE [^REFERENCE FAVOUR QUESTION]{0,5} (?P<marker>FAVOUR) THIS "
        r"(?=[COMMA QUESTION] | $)",
    ),
    ClaimRule(
        "Closing in favour of the discussion in #1.",
        r"(?P<marker>FAVOUR) [^REFERENCE DUPLICATE FAVOUR SAME_AS FIXED NOT DIFFERENT THAT_ONE "
        r"QUESTION]{0,9}? TARGETS",
    ),
    ClaimRule(
        "Subsumed by the new tracker, which lists all that is left for the summer: #1",
        r"(?P<marker>FAVOUR) [^REFERENCE DUPLICATE FAVOUR SAME_AS NOT QUESTION]{8,24} COMMA TARGETS $",
    ),
    ClaimRule(
        "Moved to a new issue, #1.",
        r"(?P<marker>MOVED) (?:[^REFERENCE DUPLICATE FAVOUR SAME_AS FIXED NOT DIFFERENT THAT_ONE "
        r"QUESTION COMMA]{0,7}? | [ARTICLE FILLER ISSUE WORD BY]{0,3} COMMA) TARGETS",
    ),
    ClaimRule(
        "Closing in favour of that.",
        r"(?P<marker>[FAVOUR MOVED]) ARTICLE? THAT_ONE",
        points_back=True,
    ),
    ClaimRule(
        "Closing in favour of two, one for each half:",
        r"(?P<marker>FAVOUR) [^REFERENCE QUESTION]{0,16} COMMA $",
        opens_list=True,
    ),
)

_LIKENESSES = (
    ClaimRule(
        "#1 is the same issue as #2.",
        r"SUBJECT [IS FILLER ALSO MAYBE ARTICLE AS WORD COMMA]{1,5} (?P<marker>SAME_AS) [ARTICLE "
        r"FILLER ISSUE WORD]{0,2} (?:TARGETS | (?P<reversed>THIS))",
    ),
    ClaimRule(
        "This is the same issue as #1.",
        r"(?P<marker>SAME_AS) [ARTICLE FILLER ISSUE WORD OF BY]{0,3}? TARGETS",
    ),
    ClaimRule(
        "This is the same issue as that one.",
        r"(?P<marker>SAME_AS) ARTICLE? THAT_ONE",
        points_back=True,
    ),
    ClaimRule(
        "#1 is exactly the same bug.",
        r"TARGETS COMMA? (?:WHICH COMMA?)? (?:[MAYBE FILLER]{0,2} IS | MAYBE) [FILLER MAYBE ARTICLE IS "
        r"ALSO ISSUE]{0,4} (?P<marker>SAME)",
    ),
    ClaimRule(
        "和 #1 同一个问题",
        r"TARGETS WORD{0,2} (?P<marker>SAME)",
    ),
    ClaimRule(
        "The very same problem: #1",
        r"(?P<marker>SAME) [COMMA AS BY]{0,2} ARTICLE? ISSUE? TARGETS",
    ),
    ClaimRule(
        "Very similar to #1, closing.",
        r"(?P<marker>SIMILAR_TO) [ARTICLE ISSUE FILLER WORD CLOSE THAT_ONE]{0,3} TARGETS",
        must_close=True,
    ),
    ClaimRule(
        "Same issue, will close.",
        r"(?:^ | (?<=[COMMA THANKS YES FILLER])) (?P<marker>SAME) (?=COMMA | $)",
        must_close=True,
    ),
    ClaimRule(
        "How does this differ from #1?",
        r"THIS [FILLER IS MAYBE]{0,3} (?P<marker>DIFFERENT) [OF BY]? [ARTICLE ISSUE]{0,2} TARGETS "
        r"(?=.{0,4} QUESTION)",
        is_open_question=True,
    ),
    ClaimRule(
        "What's the difference to #1?",
        r"(?P<marker>DIFFERENT) [OF WORD BY]{1,2} (?:THIS AND)? TARGETS (?=.{0,4} QUESTION)",
        is_open_question=True,
    ),
    # The end of the pattern excludes "this is #1's fault".
    ClaimRule(
        "Whoops, this is #1.",
        r"(?:^ | (?<=[COMMA FILLER])) (?:MAYBE (?=THIS))? [THIS THAT_ONE]? [MAYBE FILLER]{0,2} "
        r"(?P<marker>[THIS IS]) [FILLER MAYBE ARTICLE ISSUE]{0,4} TARGETS (?=[FILLER ALSO ISSUE]? "
        r"(?:[COMMA QUESTION] | $) | FILLER{0,4} OF? CLOSE)",
    ),
)

_TRACKED = (
    ClaimRule(
        "This is already tracked in #1.",
        r"(?<![WORD ISSUE] AS) (?P<marker>TRACKED) [COMMA ARTICLE FILLER ISSUE WORD SEE]{0,3}? TARGETS",
    ),
    ClaimRule(
        "It is tracked in the other issue.",
        r"(?P<marker>TRACKED) ARTICLE? THAT_ONE",
        points_back=True,
    ),
    ClaimRule(
        "#1 is the tracking issue.",
        r"TARGETS [FILLER MAYBE]{0,2} IS [FILLER MAYBE]{0,2} ARTICLE? WORD? (?P<marker>TRACKED)",
    ),
    ClaimRule(
        "I think #1 covers the same thing.",
        r"TARGETS [WORD FILLER ALSO MAYBE IS OF]{0,4} (?P<marker>COVERS) (?=[THIS ARTICLE SAME "
        r"THAT_ONE COMMA] | $)",
    ),
    ClaimRule(
        "This is part of #1.",
        r"(?:^ YES? COMMA? | THIS [FILLER MAYBE IS ARTICLE AS]{0,4} WORD? [ARTICLE AS]?) "
        r"(?P<marker>PART_OF) TARGETS",
    ),
    ClaimRule(
        "This has already been reported as #1.",
        r"(?P<marker>REPORTED) [^REFERENCE DUPLICATE FAVOUR SAME_AS RELATED DIFFERENT QUESTION]{0,5}? "
        r"TARGETS",
    ),
    ClaimRule(
        "There's #1 already open for this.",
        r"TARGETS [^REFERENCE DUPLICATE FAVOUR SAME_AS RELATED DIFFERENT QUESTION]{0,5}? "
        r"(?P<marker>REPORTED)",
    ),
)

RULES = {
    ClaimKind.DUPLICATE: _DUPLICATES,
    ClaimKind.FAVOUR: _FAVOURS,
    ClaimKind.SAME: _LIKENESSES,
    ClaimKind.TRACKED: _TRACKED,
}


def compile_rule(rule: ClaimRule) -> re.Pattern[str]:
    """Compile the rule's pattern with its shorthands expanded."""
    return code_pattern(_SHORTHAND.sub(lambda name: _SHORTHANDS[name[0]], rule.pattern))
