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
from textwrap import dedent
from typing import NamedTuple

from gis_builder.detection.lexicon import code_pattern
from gis_builder.store import Relation


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
    # Counts only beside words of closing: "very similar to #1, closing"
    must_close: bool = False
    is_open_question: bool = False  # "how does this differ from #1?"


def _rules(table: str) -> tuple[ClaimRule, ...]:
    """Parse examples, some with a flag such as [must_close], indented patterns, and comments."""
    rules: list[ClaimRule] = []
    for line in dedent(table).strip().splitlines():
        if line.startswith(" "):
            rules[-1] = rules[-1]._replace(
                pattern=f"{rules[-1].pattern} {line.strip()}".lstrip()
            )
        elif not line.startswith("# "):
            example, _, flag = line.removesuffix("]").partition(" [")
            rules.append(ClaimRule(example, "", **({flag: True} if flag else {})))
    return tuple(rules)


# Shared parts of patterns, by name.
_SHORTHANDS = {
    "TARGETS": "(?P<targets>REFERENCE)",
    "SUBJECT": "(?P<subject>REFERENCE)",
    "IS_OR_SEEMS": (  # "is", "was closed as", "seems to be"
        "(?:[IS FILLER ALSO MAYBE AS ARTICLE WORD SEE CLOSE COMMA]{0,4} IS "
        "[IS FILLER ALSO MAYBE AS ARTICLE WORD CLOSE]{0,5})"
    ),
    "NOT_BY_THE_WAY": (  # "unrelated to #1, dup of #2" has no claim about #1
        "(?<![DIFFERENT RELATED SIMILAR_TO FIXED NOT])(?<![DIFFERENT RELATED SIMILAR_TO FIXED] [OF BY])"
    ),
}
_SHORTHAND = re.compile("|".join(_SHORTHANDS))

_DUPLICATES = _rules(r"""
    # The target comes before the marker.
    That is #1, of which this is a dup.
        TARGETS COMMA{0,4} OF WHICH COMMA? THIS? [^REFERENCE DUPLICATE FAVOUR QUESTION]{0,5}?
        (?P<marker>DUPLICATE) (?!ISSUE? OF)
    There is #1, which this is a dup of.
        TARGETS COMMA{0,4} WHICH [^REFERENCE DUPLICATE FAVOUR QUESTION]{0,4}? THIS [^REFERENCE DUPLICATE
        FAVOUR QUESTION]{0,4}? (?P<marker>DUPLICATE) OF (?!ISSUE? REFERENCE)
    #1 is a dup of this, but closing this one.
        TARGETS [IS ALSO MAYBE] ARTICLE? [FILLER MAYBE]? (?P<marker>DUPLICATE) OF THIS (?=.{0,24} CLOSE
        [FILLER ARTICLE ALSO]{0,2} THIS)
    # Another issue is said to be a duplicate.
    #1 and #2 are dups of #3.
        (?<!THIS AND)(?<!THIS ARTICLE AND) SUBJECT IS [FILLER ARTICLE ALSO WORD]{0,2} (?P<marker>DUPLICATES)
        OF TARGETS
    #1 duplicates this.
        SUBJECT [^REFERENCE DUPLICATE FAVOUR SAME_AS TRACKED QUESTION IF NOT]{0,5}? (?P<marker>DUPLICATES)
        (?P<reversed>THIS)
    See #1, which is a dup of #2.
        SUBJECT COMMA? WHICH [^REFERENCE DUPLICATE FAVOUR]{0,7} (?P<marker>[DUPLICATE DUPLICATED]) ISSUE?
        [COMMA OF]{0,2} [ARTICLE FILLER ISSUE WORD]{0,3} TARGETS
    #1 was closed as a duplicate of #2.
        SUBJECT COMMA? (?:WHICH COMMA?)? IS_OR_SEEMS (?P<marker>[DUPLICATE DUPLICATED]) ISSUE? [COMMA
        OF]{0,2} [ARTICLE FILLER ISSUE WORD]{0,3} TARGETS
    #1 is a duplicate of this.
        SUBJECT COMMA? (?:WHICH COMMA?)? [IS FILLER ALSO MAYBE AS ARTICLE WORD CLOSE COMMA]{0,6}
        (?P<marker>[DUPLICATE DUPLICATED]) ISSUE? OF [ARTICLE FILLER ISSUE]{0,2} (?P<reversed>[THIS
        THAT_ONE]) (?!ISSUE? COMMA? REFERENCE)
    Closing #1 as a dup of #2.
        CLOSE [ARTICLE ISSUE FILLER]{0,2} SUBJECT COMMA? [ALSO WORD]? AS ARTICLE? FILLER?
        (?P<marker>DUPLICATE) ISSUE? OF [ARTICLE FILLER ISSUE]{0,2} (?:TARGETS | (?P<reversed>[THIS
        THAT_ONE]))
    There is also #1 (dup of #2).
        NOT_BY_THE_WAY SUBJECT COMMA? [FILLER ALSO AS]{0,2} ARTICLE? (?P<marker>DUPLICATE) OF TARGETS
    I see that #1 duplicates #2.
        (?<![THIS IS MAYBE FILLER]) SUBJECT [FILLER ALSO]? (?P<marker>DUPLICATES) TARGETS
    Duplicates: #1
        (?P<marker>DUPLICATES) COMMA{1,2} SUBJECT
    # The target comes after the marker.
    A dup of the old bug #1.
        (?P<marker>DUPLICATE) ISSUE? [FILLER DIFFERENT]? COMMA? OF [^DUPLICATE FAVOUR SAME_AS TRACKED FIXED
        REFERENCE RELATED DIFFERENT QUESTION]{0,9}? TARGETS
    They are dups; close the duplicate of this.
        (?P<marker>DUPLICATE) ISSUE? OF [ARTICLE FILLER]? (?P<reversed>THIS)
    This and #1 are dups of #2.
        (?: ^ | (?:REFERENCE AND | ^ | (?<!REFERENCE) COMMA) THIS ARTICLE? (?:AND REFERENCE)? [IS FILLER ARTICLE
        ALSO WORD]{1,3}) (?P<marker>DUPLICATES) OF TARGETS
    A dup of: [opens_list]
        (?P<marker>DUPLICATE) OF COMMA{1,2} $
    A dup of that one. [points_back]
        (?P<marker>DUPLICATE) ISSUE? OF ARTICLE? THAT_ONE
    A dup of, or at least related to, #1.
        (?P<marker>DUPLICATE) OF? COMMA? AND [ARTICLE FILLER WORD BY]{0,2} [RELATED SIMILAR_TO] OF? COMMA?
        TARGETS
    Dup: #1
        (?P<marker>DUPLICATE) ISSUE? [COMMA ARTICLE]{0,3} SEE? [ARTICLE ISSUE COMMA]{0,2} TARGETS
    This has many duplicates (e.g. #1), closing. [must_close]
        (?<![REFERENCE THAT_ONE]) (?P<marker>HAS_DUPLICATES) [^REFERENCE DUPLICATE FAVOUR SAME_AS
        QUESTION]{0,5}? TARGETS
    It's a dup, for the cause see #1.
        (?P<marker>DUPLICATE) ISSUE? (?:(?:IS WORD)? COMMA [^REFERENCE DUPLICATE FAVOUR SAME_AS TRACKED
        FIXED RELATED DIFFERENT QUESTION]{0,4})? SEE [ARTICLE ISSUE OF COMMA FILLER]{0,3} TARGETS
    This duplicates #1.
        (?:^ | (?<=THIS) | (?<=[THIS FILLER] FILLER) | (?<=COMMA) | (?<=THIS [MAYBE ISSUE]) | (?<=THIS [WORD
        FILLER])) (?P<marker>DUPLICATES) ARTICLE? ISSUE? COMMA? TARGETS
    Duplicated, as it were, by #1.
        (?<!ARTICLE) (?P<marker>DUPLICATED) [^REFERENCE DUPLICATE FAVOUR FIXED QUESTION]{0,8}? [BY OF]
        ARTICLE? ISSUE? TARGETS
    Issue duplicated, see #1.
        (?: ^ | (?<=[THIS IS AS CLOSE COMMA ISSUE FILLER ARTICLE])) (?P<marker>DUPLICATED) ISSUE?
        (?:COMMA{0,2} SEE)? [COMMA ARTICLE ISSUE BY]{0,3} TARGETS
    #1 duplicated
        ^ TARGETS (?P<marker>DUPLICATED) (?=COMMA | $)
    A dup of issues like: [opens_list]
        (?P<marker>DUPLICATE) OF ARTICLE? [FILLER WORD]{0,2} ISSUE [^REFERENCE QUESTION]{0,3} COMMA $
    # No target near the marker; excludes "duplicate code", "the duplicate symbol", "disallow duplicate keys".
    Looks like a dupe, thanks.
        (?:^ | (?<=[ARTICLE AS IS FILLER THIS CLOSE YES AND ALSO COMMA MAYBE NOT WORD OF ISSUE REFERENCE
        QUESTION THANKS])) (?<![BY OF] ARTICLE) (?P<marker>DUPLICATE) (?=ISSUE? (?:[COMMA QUESTION FILLER
        AND ALSO THIS] | $ | CLOSE THIS | WORD{0,5} CLOSE | YES | THANKS | BY DUPLICATE) | (?<!WORD
        DUPLICATE) ISSUE? WORD $)
    Closing this as a dup since it was known.
        CLOSE [^REFERENCE DUPLICATE FAVOUR NOT QUESTION]{0,4} AS ARTICLE? (?P<marker>DUPLICATE)
    It is not a duplicate strictly speaking.
        NOT [^COMMA AND REFERENCE CLOSE]{0,4}? ARTICLE (?P<marker>DUPLICATE) (?=[WORD FILLER]{0,4} $)
    Sorry, I meant #1. [corrects]
        (?P<marker>CORRECTION) [COMMA ARTICLE FILLER ISSUE]{0,2} TARGETS
""")

_FAVOURS = _rules(r"""
    #1 was closed in favour of #2.
        (?<!FIXED [BY OF WORD]) SUBJECT [IS FILLER ALSO MAYBE CLOSE ARTICLE AS WORD COMMA]{0,5}
        (?P<marker>FAVOUR) [ARTICLE FILLER ISSUE]{0,2} (?:TARGETS | (?P<reversed>THIS))
    #1 says more, closing this in favour of it.
        TARGETS [^QUESTION]{0,12} CLOSE [^REFERENCE FAVOUR QUESTION]{0,5} (?P<marker>FAVOUR) THIS (?=[COMMA
        QUESTION] | $)
    Closing in favour of the discussion in #1.
        (?P<marker>FAVOUR) [^REFERENCE DUPLICATE FAVOUR SAME_AS FIXED NOT DIFFERENT THAT_ONE QUESTION]{0,9}?
        TARGETS
    Subsumed by the new tracker, which lists all that is left for the summer: #1
        (?P<marker>FAVOUR) [^REFERENCE DUPLICATE FAVOUR SAME_AS NOT QUESTION]{8,24} COMMA TARGETS (?=CLOSE? $)
    Added this to #1, closing. [must_close]
        (?P<marker>ADDED_TO) TARGETS
    Moved to a new issue, #1.
        (?P<marker>MOVED) (?:[^REFERENCE DUPLICATE FAVOUR SAME_AS FIXED NOT DIFFERENT THAT_ONE QUESTION
        COMMA]{0,7}? | [ARTICLE FILLER ISSUE WORD BY]{0,3} COMMA) TARGETS
    Closing in favour of that. [points_back]
        (?P<marker>[FAVOUR MOVED]) ARTICLE? THAT_ONE
    Closing in favour of two, one for each half: [opens_list]
        (?P<marker>FAVOUR) [^REFERENCE QUESTION]{0,16} COMMA $
""")

_LIKENESSES = _rules(r"""
    #1 is the same issue as #2.
        SUBJECT [IS FILLER ALSO MAYBE ARTICLE AS WORD COMMA]{1,5} (?P<marker>SAME_AS) [ARTICLE FILLER ISSUE
        WORD]{0,2} (?:TARGETS | (?P<reversed>THIS))
    This is the same issue as #1.
        (?P<marker>SAME_AS) [ARTICLE FILLER ISSUE WORD OF BY]{0,3}? TARGETS
    This is the same issue as that one. [points_back]
        (?P<marker>SAME_AS) ARTICLE? THAT_ONE
    #1 is exactly the same bug.
        TARGETS COMMA? (?:[WHICH THIS] COMMA?)? (?:[MAYBE FILLER]{0,2} IS | MAYBE) [FILLER MAYBE ARTICLE
        IS ALSO ISSUE]{0,4} (?P<marker>SAME)
    See #1, same problem.
        TARGETS COMMA (?P<marker>SAME) (?=COMMA | $)
    The very same problem: #1
        (?P<marker>SAME) [COMMA AS BY]{0,2} ARTICLE? ISSUE? TARGETS
    Very similar to #1, closing. [must_close]
        (?P<marker>SIMILAR_TO) [ARTICLE ISSUE FILLER WORD CLOSE THAT_ONE]{0,3} TARGETS
    Same issue, will close. [must_close]
        (?:^ | (?<=[COMMA THANKS YES FILLER])) (?P<marker>SAME) (?=COMMA | $)
    How does this differ from #1? [is_open_question]
        THIS [FILLER IS MAYBE]{0,3} (?P<marker>DIFFERENT) [OF BY]? [ARTICLE ISSUE]{0,2} TARGETS (?=.{0,4}
        QUESTION)
    What's the difference to #1? [is_open_question]
        (?P<marker>DIFFERENT) [OF WORD BY]{1,2} (?:THIS AND)? TARGETS (?=.{0,4} QUESTION)
    # The end of the pattern excludes "this is #1's fault".
    Whoops, this is #1.
        (?:^ | (?<=[COMMA FILLER])) (?:MAYBE (?=THIS))? (?:[THIS THAT_ONE] ISSUE?)? [MAYBE FILLER]{0,2}
        (?P<marker>[THIS IS]) [FILLER MAYBE ARTICLE ISSUE]{0,4} TARGETS (?=[FILLER ALSO ISSUE]? (?:[COMMA
        QUESTION] | $) | FILLER{0,4} OF? CLOSE)
""")

_TRACKED = _rules(r"""
    This is already tracked in #1.
        (?<![WORD ISSUE] AS) (?P<marker>TRACKED) [COMMA ARTICLE FILLER ISSUE WORD SEE]{0,3}? TARGETS
    It is tracked in the other issue. [points_back]
        (?P<marker>TRACKED) ARTICLE? THAT_ONE
    #1 is the tracking issue.
        TARGETS [FILLER MAYBE]{0,2} IS [FILLER MAYBE]{0,2} ARTICLE? WORD? (?P<marker>TRACKED) (?!ARTICLE WORD)
    I think #1 covers the same thing.
        TARGETS [WORD FILLER ALSO MAYBE IS OF]{0,4} (?P<marker>COVERS) (?=[THIS ARTICLE SAME THAT_ONE COMMA]
        | $)
    This is part of #1.
        (?:^ YES? COMMA? | THIS [FILLER MAYBE IS ARTICLE AS]{0,4} WORD? [ARTICLE AS]?) (?P<marker>PART_OF)
        TARGETS
    This has already been reported as #1.
        (?P<marker>REPORTED) [^REFERENCE DUPLICATE FAVOUR SAME_AS RELATED DIFFERENT QUESTION]{0,5}? TARGETS
    There's #1 already open for this.
        TARGETS [^REFERENCE DUPLICATE FAVOUR SAME_AS RELATED DIFFERENT QUESTION]{0,5}? (?P<marker>REPORTED)
""")

RULES = {
    ClaimKind.DUPLICATE: _DUPLICATES,
    ClaimKind.FAVOUR: _FAVOURS,
    ClaimKind.SAME: _LIKENESSES,
    ClaimKind.TRACKED: _TRACKED,
}


# In other languages the target comes before or after the marker, with other words between.
_ANY_ORDER = r"""
    #2 is a duplicate of #1.
        SUBJECT [^REFERENCE COMMA CLAIM]{0,2} IS [^REFERENCE COMMA CLAIM]{0,4} (?P<marker>[CLAIM]) [OF ARTICLE
        ISSUE]{0,2} TARGETS
    #2 #1 duplicates.
        SUBJECT IS [^REFERENCE COMMA CLAIM]{0,2} TARGETS [^REFERENCE COMMA CLAIM]{0,4} (?P<marker>[CLAIM])
    #1 with the same problem.
        TARGETS [^REFERENCE CLAIM QUESTION DIFFERENT RELATED FIXED COMMA]{0,8}? (?P<marker>[CLAIM])
    The same problem as #1.
        (?P<marker>[CLAIM]) [^REFERENCE CLAIM QUESTION DIFFERENT RELATED FIXED NOT]{0,8}? TARGETS
    #1: the same problem
        TARGETS COMMA [^REFERENCE CLAIM QUESTION DIFFERENT RELATED FIXED COMMA]{0,6}? (?P<marker>[CLAIM])
"""
_SPECIAL_ORDERS = {
    ClaimKind.DUPLICATE: _rules(r"""
    #1 is a dup of this.
        SUBJECT [^REFERENCE COMMA DUPLICATE]{0,2} IS [^REFERENCE COMMA DUPLICATE]{0,4} (?P<marker>DUPLICATE)
        [OF ARTICLE ISSUE FILLER]{0,2} (?P<reversed>THIS)
    #1 is this a dup.
        SUBJECT IS (?P<reversed>THIS) [^REFERENCE COMMA DUPLICATE]{0,4} (?P<marker>DUPLICATE)
    #1 I meant. [corrects]
        TARGETS FILLER{0,2} (?P<marker>CORRECTION) (?=FILLER{0,2} $)
""")
}
_ALONE = {
    ClaimKind.DUPLICATE: _rules(r"""
    Duplicate.
        ^ [THIS IS ARTICLE FILLER MAYBE NOT COMMA YES THANKS ISSUE]{0,6} (?P<marker>DUPLICATE) [FILLER COMMA
        MAYBE NOT IS THIS ISSUE THANKS]{0,6} $
    Closing as duplicate.
        CLOSE [^REFERENCE QUESTION]{0,9} (?P<marker>DUPLICATE)
    A duplicate, so I'm closing it.
        (?P<marker>DUPLICATE) (?=[^REFERENCE QUESTION]{0,9} CLOSE)
"""),
    ClaimKind.SAME: _rules(r"""
    The same problem, closing. [must_close]
        ^ [THIS IS ARTICLE FILLER COMMA YES THANKS]{0,4} (?P<marker>SAME) [FILLER COMMA IS ISSUE]{0,4} $
"""),
    ClaimKind.TRACKED: _rules(r"""
    A known problem.
        ^ [THIS IS ARTICLE FILLER COMMA YES THANKS ISSUE]{0,6} (?P<marker>REPORTED) [FILLER COMMA IS ISSUE
        SEE]{0,4} $
"""),
}


def _with_other_orders(kind: ClaimKind) -> list[ClaimRule]:
    table = _ANY_ORDER.replace("CLAIM", " ".join(CODES[kind]))
    first = _SPECIAL_ORDERS.get(kind, ())
    return [*first, *_rules(table), *RULES[kind], *_ALONE.get(kind, ())]


# The codes of the words that make a claim in a language other than English.
CODES = {
    ClaimKind.DUPLICATE: ("DUPLICATE", "DUPLICATES", "DUPLICATED"),
    ClaimKind.FAVOUR: ("FAVOUR", "MOVED"),
    ClaimKind.SAME: ("SAME", "SAME_AS"),
    ClaimKind.TRACKED: ("TRACKED", "REPORTED"),
}
FOREIGN_RULES = {kind: _with_other_orders(kind) for kind in RULES}


def compile_rule(rule: ClaimRule) -> re.Pattern[str]:
    """Compile the rule's pattern with its shorthands expanded."""
    return code_pattern(_SHORTHAND.sub(lambda name: _SHORTHANDS[name[0]], rule.pattern))


_PART = re.compile(
    r"part|portion|piece|aspect|sub-?section|sub-?issue|sub-?bug|sub-?case|subset|special case|\bcase of"
    r"|variant of"
)
_SUPERSEDED = re.compile(r"super[cs]ee?d|subsum")
_REPORTED = re.compile(
    r"report|filed|\bopen|exist|known|request|raised|submitted|logged|noted|recorded|registered|mentioned"
    r"|discussed|described|already an? |on file|there\S* (?:is |was )?(?:also )?already|^already$"
)


def relation_of(kind: ClaimKind, marker: str) -> Relation:
    """The relation that a claim states by the words of its marker."""
    if kind is ClaimKind.DUPLICATE:
        return Relation.DUPLICATE
    if kind is ClaimKind.FAVOUR or _SUPERSEDED.search(marker):
        return Relation.SUPERSEDED
    if _PART.search(marker):
        return Relation.PART_OF
    if kind is ClaimKind.SAME:
        return Relation.SAME
    return Relation.REPORTED if _REPORTED.search(marker) else Relation.TRACKED
