"""The patterns over strings of codes (the table is in `lexicon`), each with a sentence that it reads.

In a pattern `R` is a reference or a list of them, `D` the word "duplicate", `o` one of "of, to, with", `.`
any token and so on. The named groups are what the grammar takes from a match:

- `m` the marker, `c` a marker that corrects what was said before
- `t` the references that the marker points at, `s` other issues that it is said of
- `r` the words by which this issue is the canonical one: "#1 is a dup of *this*"
- `p` nothing: the marker points back, as in "dup of *that*"
- `b` the colon that begins a list of references
- `k` nothing: the marker counts only beside a closing
- `q` nothing: the marker asks what somebody may answer

Of overlapping matches the earlier rule's counts, so that the special ones stand before the general ones.
Every pattern spans a bounded number of tokens, so that it reads a sentence in linear time.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One way of claiming something, by the kind of claim (`D`, `F`, `S` or `K`)."""

    kind: str
    example: str
    pattern: str


_TARGETS = r"(?P<t>R)"
_SUBJECT = r"(?P<s>R)"
_IS = r"(?:[VJMHaxweC,]{0,4}V[VJMHaxwC]{0,5})"  # "is", "was closed as", "seems to be"
_NOT_BY_THE_WAY = r"(?<![ELlX])(?<![ELlX][ob])"  # "unrelated to #1, dup of #2" says nothing of #1

_DUPLICATES = (
    # The target stands before the marker.
    Rule(
        "D",
        "That is #1, of which this is a dup.",
        rf"{_TARGETS},{{0,4}}oW[,]?T?[^RDF.?]{{0,5}}?(?P<m>D)(?!i?o)",
    ),
    Rule(
        "D",
        "There is #1, which this is a dup of.",
        rf"{_TARGETS},{{0,4}}W[^RDF.?]{{0,4}}?T[^RDF.?]{{0,4}}?(?P<m>D)o(?!i?R)",
    ),
    Rule(
        "D",
        "#1 is a dup of this, but closing this one.",
        rf"{_TARGETS}[VMH]x?[JH]?(?P<m>D)oT(?=.{{0,24}}C[JxM]{{0,2}}T)",
    ),
    # Another issue is said to be a duplicate.
    Rule("D", "#1 duplicates this.", r"(?P<s>R)[^RDFSK?IN]{0,5}?(?P<m>d)(?P<r>T)"),
    Rule(
        "D",
        "See #1, which is a dup of #2.",
        rf"{_SUBJECT},?W[^.RDF]{{0,7}}(?P<m>[DZ])i?[,o]{{0,2}}[xJiw]{{0,3}}{_TARGETS}",
    ),
    Rule(
        "D",
        "#1 was closed as a duplicate of #2.",
        rf"{_SUBJECT},?(?:W,?)?{_IS}(?P<m>[DZ])i?[,o]{{0,2}}[xJiw]{{0,3}}{_TARGETS}",
    ),
    Rule(
        "D",
        "#1 is a duplicate of this.",
        rf"{_SUBJECT},?(?:W,?)?[VJMHaxwC,]{{0,6}}(?P<m>[DZ])i?o[xJi]{{0,2}}(?P<r>[TO])(?!i?[,]?R)",
    ),
    Rule(
        "D",
        "Closing #1 as a dup of #2.",
        rf"C[xiJ]{{0,2}}{_SUBJECT},?[Mw]?ax?J?(?P<m>D)i?o[xJi]{{0,2}}(?:{_TARGETS}|(?P<r>[TO]))",
    ),
    Rule(
        "D",
        "There is also #1 (dup of #2).",
        rf"{_NOT_BY_THE_WAY}{_SUBJECT},?[JMa]{{0,2}}x?(?P<m>D)o{_TARGETS}",
    ),
    Rule("D", "I see that #1 duplicates #2.", rf"(?<![TVHJ]){_SUBJECT}[JM]?(?P<m>d){_TARGETS}"),
    Rule("D", "Duplicates: #1", r"(?P<m>d)[:,]{1,2}(?P<s>R)"),
    # The target stands after the marker.
    Rule("D", "A dup of the old bug #1.", rf"(?P<m>D)i?[JE]?[,]?o[^DFSKXRLE?]{{0,9}}?{_TARGETS}"),
    Rule("D", "They are dups; close the duplicate of this.", r"(?P<m>D)i?o[xJ]?(?P<r>T)"),
    Rule("D", "A dup of that one.", r"(?P<m>D)i?ox?O(?P<p>)"),
    Rule("D", "Dup: #1", rf"(?P<m>D)i?[,x]{{0,3}}e?[xi,]{{0,2}}{_TARGETS}"),
    Rule("D", "重複です #1", rf"(?P<m>D)J{{1,2}},?e?{_TARGETS}"),
    Rule(
        "D",
        "This has many duplicates (e.g. #1), closing.",
        rf"(?<![RO])(?P<k>)(?P<m>n)[^RDFS.?]{{0,5}}?{_TARGETS}",
    ),
    Rule(
        "D",
        "It's a dup, for the cause see #1.",
        rf"(?P<m>D)i?(?:(?:Vw)?,[^RDFSKXLE?]{{0,4}})?e[xio,J]{{0,3}}{_TARGETS}",
    ),
    Rule(
        "D",
        "This duplicates #1.",
        rf"(?:(?<=T)|(?<=^)|(?<=[TJ]J)|(?<=,)|(?<=TH)|(?<=T[wJ]))(?P<m>d)x?i?,?{_TARGETS}",
    ),
    Rule("D", "Duplicated, as it were, by #1.", rf"(?P<m>Z)[^RDFX.?]{{0,8}}?[bo]x?i?{_TARGETS}"),
    Rule("D", "与 #1 重复", rf"{_TARGETS}w{{0,3}}(?P<m>D)(?!i?[oRe])"),
    Rule("D", "A dup of issues like:", r"(?P<m>D)ox?[Jw]{0,2}i[^R.?]{0,3}(?P<b>,)$"),
    # No target beside the marker; not "duplicate code", "the duplicate symbol".
    Rule(
        "D",
        "Looks like a dupe, thanks.",
        r"(?:(?<=^)|(?<=[xaVJTCY&M,HNwoiR?.y]))(?<![bo]x)(?P<m>D)"
        r"(?=i?(?:[.,?J&MT]|$|CT|w{0,5}C|Y|y|w?$|bD))",
    ),
    Rule("D", "Closing this as a dup since it was known.", r"C[^RDFN.?]{0,4}ax?(?P<m>D)"),
    Rule("D", "It is not a duplicate strictly speaking.", r"N[^,.&RC]{0,4}?x(?P<m>D)(?=[wJ]{0,4}$)"),
)

_FAVOURS = (
    Rule(
        "F",
        "#1 was closed in favour of #2.",
        rf"(?<!X[bow]){_SUBJECT}[VJMHCxaw,]{{0,5}}(?P<m>F)[xJi]{{0,2}}(?:{_TARGETS}|(?P<r>T))",
    ),
    Rule(
        "F",
        "#1 says more, closing this in favour of it.",
        rf"{_TARGETS}[^.?]{{0,12}}C[^RF.?]{{0,5}}(?P<m>F)T(?=[,.?]|$)",
    ),
    Rule("F", "Closing in favour of the discussion in #1.", rf"(?P<m>F)[^RDFSXNEO.?]{{0,9}}?{_TARGETS}"),
    Rule(
        "F",
        "Subsumed by the new tracker, which lists all that is left for the summer: #1",
        rf"(?P<m>F)[^RDFSN.?]{{8,24}},{_TARGETS}$",
    ),
    Rule(
        "F",
        "Moved to a new issue, #1.",
        rf"(?P<m>m)(?:[^RDFSXNEO.?,]{{0,7}}?|[xJiwb]{{0,3}},){_TARGETS}",
    ),
    Rule("F", "Closing in favour of that.", r"(?P<m>[Fm])x?(?P<p>O)"),
    Rule("F", "Closing in favour of two, one for each half:", r"(?P<m>F)[^R.?]{0,16}(?P<b>,)$"),
)

_LIKENESSES = (
    Rule(
        "S",
        "#1 is the same issue as #2.",
        rf"{_SUBJECT}[VJMHxaw,]{{1,5}}(?P<m>S)[xJiw]{{0,2}}(?:{_TARGETS}|(?P<r>T))",
    ),
    Rule("S", "This is the same issue as #1.", rf"(?P<m>S)[xJiwob]{{0,3}}?{_TARGETS}"),
    Rule("S", "This is the same issue as that one.", r"(?P<m>S)x?(?P<p>O)"),
    Rule(
        "S", "#1 is exactly the same bug.", rf"{_TARGETS},?(?:W,?)?(?:[HJ]{{0,2}}V|H)[JHxVMi]{{0,4}}(?P<m>s)"
    ),
    Rule("S", "和 #1 同一个问题", rf"{_TARGETS}w{{0,2}}(?P<m>s)"),
    Rule("S", "The very same problem: #1", rf"(?P<m>s)[,ab]{{0,2}}x?i?{_TARGETS}"),
    Rule("S", "Very similar to #1, closing.", rf"(?P<k>)(?P<m>l)[xiJwCO]{{0,3}}{_TARGETS}"),
    Rule("S", "Same issue, will close.", r"(?:^|(?<=[,yYJ]))(?P<k>)(?P<m>s)(?=[,.]|$)"),
    Rule(
        "S",
        "How does this differ from #1?",
        rf"T[JVH]{{0,3}}(?P<q>)(?P<m>E)[ob]?[xi]{{0,2}}{_TARGETS}(?=[^.]{{0,4}}\?)",
    ),
    Rule(
        "S", "What's the difference to #1?", rf"(?P<q>)(?P<m>E)[owb]{{1,2}}(?:T&)?{_TARGETS}(?=[^.]{{0,4}}\?)"
    ),
    # And nothing after it that would make it "this is #1's fault".
    Rule(
        "S",
        "Whoops, this is #1.",
        rf"(?:^|(?<=[,J]))(?:H(?=T))?[TO]?[HJ]{{0,2}}(?P<m>[TV])[JHxi]{{0,4}}{_TARGETS}(?=[JMi]?(?:[.,?]|$)|J{{0,4}}o?C)",
    ),
)

_CORRECTIONS = (Rule("D", "Sorry, I meant #1.", rf"(?P<c>c)[,xJi]{{0,2}}{_TARGETS}"),)

_TRACKED = (
    Rule("K", "This is already tracked in #1.", rf"(?<![wi]a)(?P<m>K)[,xJiwe]{{0,3}}?{_TARGETS}"),
    Rule("K", "It is tracked in the other issue.", r"(?P<m>K)x?(?P<p>O)"),
    Rule("K", "#1 is the tracking issue.", rf"{_TARGETS}[JH]{{0,2}}V[JH]{{0,2}}x?w?(?P<m>K)"),
    Rule("K", "I think #1 covers the same thing.", rf"{_TARGETS}[wJMHVo]{{0,4}}(?P<m>f)(?=[TxsO.,]|$)"),
    Rule("K", "This is part of #1.", rf"(?:^Y?,?|T[JHVxa]{{0,4}}w?[xa]?)(?P<m>P){_TARGETS}"),
    Rule("K", "This has already been reported as #1.", rf"(?P<m>A)[^RDFSLE?]{{0,5}}?{_TARGETS}"),
    Rule("K", "There's #1 already open for this.", rf"{_TARGETS}[^RDFSLE?]{{0,5}}?(?P<m>A)"),
)

RULES = (*_DUPLICATES, *_FAVOURS, *_LIKENESSES, *_CORRECTIONS, *_TRACKED)
