"""Find notes that the issue is a duplicate: "[duplicate]", "EDIT: dup of #12", "closing in favour of #12".

They would reveal the label. Each line becomes a string of codes, one per token, and patterns find the notes:
"duplicate of" with a reference and the small words around it, or the word alone if such words fill its
clause. So "duplicate symbol main" stays.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from gis_builder.detection.claim_reader import find_markers
from gis_builder.detection.lexicon import Code, Span, code_pattern
from gis_builder.detection.page import ANY_ISSUE, PreparedText
from gis_builder.detection.rules import ClaimKind

_REMARK = """
    apologies apologise apologize appears be been closed closing couldn't didn't edit edited if is isn't it's
    likely looks marked marking may maybe might nb not note perhaps possible possibly potential potentially
    probable probably ps seems sorry sure suspect think this update was wasn't whether
"""
_BESIDE = """
    a about above actually after again all already also am an and another any anyone anything are aren't as at
    be because before below but by came can can't cannot close come could created did different do does
    doesn't don't down earlier either else ended exact exactly exist existing exists far feel few
    filed find first fix fixed for forgive found free from google googled guess happened happens has have
    haven't hence here hope hopefully however i i'd i'll i'm i've in indeed initially issue issues it its
    itself just kind kinda know known latter least let like list listed look looked looking made many mark me
    mentioned missed most much multiple my near nearly new no nope nor nothing noticed now obvious of off oh
    ok old older on one only open opened opening or originally other others ours out pardon please point
    pretty previous previously quick quickly quite rather realised realized really reason related report
    reported reporting reports same saw search searched searches searching see seem seemed seen shall should
    shouldn't side similar since so some somebody someone something somewhat sort still such surely tell than
    that that's the their them then there there's therefore these they thing things those though thought
    through ticket tickets to too track tracked tracker tracking true turned turns two very we well were
    weren't what when where which while why will wish with won't would wouldn't yes yet you bug bugs
"""

_DUP = re.compile(r"dup(?:e|es|ed|s)?|du(?:p|lp)\w*(?:at|it)(?:es?|ed|ing|ions?)")
_SAME = (
    r"same(?:[ \t]+(?:issue|bug|problem|thing|cause|error))?[ \t]+(?:as|to|with)"
    r"|identical[ \t]+(?:to|with|as)|in[ \t]+favou?r[ \t]+of|(?:superseded|replaced|subsumed)[ \t]+by"
    r"|(?:reported|tracked|filed|raised)(?:[ \t]+(?:already|before))?[ \t]+(?:in|by|at|under|as|with|here)"
)
_TOKEN = re.compile(
    rf"(?P<SAME>\b(?:{_SAME})\b)|(?P<NUMBER>[0-9]{{1,7}}(?![\w.]))|(?P<word>\w[\w'’]*)"
    r"|(?P<STOP>[.!?;]+(?!\w))|(?P<COMMA>,|\s[-–—]+(?=\s)|…)|(?P<COLON>:)|(?P<OPEN>[(\[])|(?P<CLOSE>[)\]])|(?P<WORD>`)",
    re.IGNORECASE,
)

# Every pattern takes at most quadratic time; lines are short, see _MAX_LINE.
_RUN = "[REMARK BESIDE COMMA COLON]*"
_LONG_RUN = "[REMARK BESIDE DUPLICATE COMMA COLON]*"
_REF = "(?:REFERENCE | LINK [^REFERENCE]{0,40} REFERENCE)"
_MORE_REFS = f"(?:[BESIDE COMMA CLOSE OPEN]* {_REF})*"
_CLAUSE_STARTS = "(?:^ | (?<=[STOP COMMA OPEN]))"
_CLAUSE_ENDS = "(?=[STOP COMMA CLOSE] | $)"

_DUP_GATE = re.compile(r"[dD][uU](?:[pP]|[lL][pP])")
_SAME_GATE = re.compile(
    r"[Ss]ame|[Ii]dentical|[Ff]avou?r of|[a-z]ed by|[Rr]eported|[Tt]racked|[Ff]iled|[Rr]aised"
)
_MAX_LINE = 1500
# In other languages: "sorry if this is a duplicate", "a duplicate, please close it"
_REMARKS = frozenset((Code.THANKS, Code.CLOSE))
_FEW_WORDS = 2
_LEADS = Code.MAYBE + Code.THANKS + Code.YES + Code.FILLER + Code.COMMA


class NoteCode(StrEnum):
    """The meaning of a token."""

    REMARK = "P"  # a word of remarks about the issue itself
    BESIDE = "T"  # a word that is common in such remarks
    WORD = "W"  # any other word
    DUPLICATE = "D"
    SAME = "M"  # "same as", "in favour of"
    REFERENCE = "R"
    LINK = "L"  # the bracket before a linked reference
    NUMBER = "N"
    STOP = "."
    COMMA = ","
    COLON = ":"
    OPEN = "("
    CLOSE = ")"


_CODES = dict.fromkeys(_BESIDE.split(), NoteCode.BESIDE) | dict.fromkeys(
    _REMARK.split(), NoteCode.REMARK
)


_pattern = partial(code_pattern, codes=NoteCode)
_ABOUT_A_REFERENCE = (
    # duplicate of #1 and #2
    _pattern(
        f"{_RUN} DUPLICATE [REMARK BESIDE DUPLICATE COMMA COLON OPEN]*"
        f" (?:{_REF} {_MORE_REFS} | NUMBER {_CLAUSE_ENDS}) (?:{_LONG_RUN} {_CLAUSE_ENDS})?"
    ),
    # this is the same as #1 and #2
    _pattern(
        f"{_CLAUSE_STARTS} {_RUN} SAME [REMARK BESIDE COMMA COLON OPEN]* {_REF} {_MORE_REFS} {_RUN}"
        f" {_CLAUSE_ENDS}"
    ),
    # #1, of which this is a duplicate
    _pattern(
        f"{_RUN} {_REF} [REMARK BESIDE COMMA COLON REFERENCE]{{1,12}} DUPLICATE {_LONG_RUN}"
        " (?=[STOP OPEN CLOSE] | $)"
    ),
)
# this is a duplicate
_REMARK_ALONE = _pattern(
    f"{_CLAUSE_STARTS} {_RUN} DUPLICATE {_LONG_RUN} (?=[STOP COMMA COLON CLOSE] | $)"
)
# [duplicate] at the start or end of a line
_TAG = _pattern(
    "^ COMMA* (?:OPEN DUPLICATE+ CLOSE | DUPLICATE+ (?=[STOP COMMA COLON] | $))"
    " | OPEN DUPLICATE+ CLOSE STOP* $ | (?<=[STOP COMMA]) DUPLICATE+ STOP* $"
)


class _Token(NamedTuple):
    code: NoteCode
    start: int
    end: int


def find_duplicate_notes(text: str, references: list[Span]) -> list[Span]:
    """Spans of notes that the issue is (or isn't) a duplicate, or of which issue."""
    spans: list[Span] = []
    starts = [start for start, _ in references]
    line_end = -1
    # Words like "same as" make a note only beside a reference.
    gates = (_DUP_GATE, _SAME_GATE) if references else (_DUP_GATE,)
    for hit in sorted(match.start() for gate in gates for match in gate.finditer(text)):
        if hit < line_end:
            continue
        start = text.rfind("\n", 0, hit) + 1
        end = text.find("\n", hit)
        line_end = len(text) if end < 0 else end
        if line_end - start <= _MAX_LINE:  # a longer line is data, not prose
            first = bisect_left(starts, start)
            after = bisect_left(starts, line_end)
            in_line = [span for span in references[first:after] if span[1] <= line_end]
            spans += _notes_of_line(text, start, line_end, in_line)
    return spans or list(_notes_in_other_languages(text))


def _notes_in_other_languages(text: str) -> Iterator[Span]:
    """The clauses that the detector takes for claims: with a target, or of nothing else."""
    page = PreparedText(text, ANY_ISSUE, ())
    for index, (_, end) in enumerate(page.spans if page.language else ()):
        sentence = page.sentence(index)
        codes = sentence.codes
        ends: list[int] = []
        is_short = codes.count(Code.WORD) <= _FEW_WORDS
        if Code.DUPLICATE in codes and is_short and not _REMARKS.isdisjoint(codes):
            ends += (0, len(codes))
        for marker in find_markers(codes, is_foreign=True):
            is_alone = marker.kind is ClaimKind.DUPLICATE and Code.WORD not in codes
            named = (*(marker.targets or ()), *(marker.subject or ()))
            if named or is_alone:
                ends += (marker.start, marker.end, *named)
        if not ends:
            continue
        # From the comma before to the comma behind, or all if it says that the issue is closed.
        first = 0
        comma = -1
        if Code.CLOSE not in codes:
            first = codes.rfind(Code.COMMA, 0, min(ends)) + 1
            if not codes[:first].strip(_LEADS):
                first = 0  # "perhaps, a duplicate"
            comma = codes.find(Code.COMMA, max(ends))
        start, _ = sentence.spans[first]
        if comma >= 0:
            comma_start, comma_end = sentence.spans[comma]
            end = comma_end if first == 0 else comma_start
        yield start, end


def _notes_of_line(
    text: str,
    start: int,
    end: int,
    references: list[Span],
) -> Iterator[Span]:
    """The notes in a line; spans that overlap an earlier note are skipped."""
    tokens = list(_tokens(text, start, end, references))
    codes = "".join(token.code for token in tokens)
    if NoteCode.DUPLICATE not in codes and not (NoteCode.SAME in codes and references):
        return
    noted_end = -1
    for first, last in sorted(_note_spans(codes)):
        while first < last and codes[first] in (NoteCode.COMMA, NoteCode.COLON):
            first += 1
        if first < last > noted_end:
            yield tokens[first].start, _note_end(tokens, codes, first, last)
            noted_end = last


def _note_spans(codes: str) -> Iterator[Span]:
    for pattern in (*_ABOUT_A_REFERENCE, _TAG):
        for match in pattern.finditer(codes):
            yield match.span()
    for match in _REMARK_ALONE.finditer(codes):
        if NoteCode.REMARK in match[0]:
            yield match.span()


def _note_end(
    tokens: list[_Token],
    codes: str,
    first: int,
    last: int,
) -> int:
    """The end of a note, including its full stop if it began a clause."""
    opens_clause = first == 0 or codes[first - 1] == NoteCode.STOP
    stops = (NoteCode.STOP, NoteCode.COMMA, NoteCode.COLON)
    if opens_clause and codes[last : last + 1] in stops:
        return tokens[last].end
    return tokens[last - 1].end


def _tokens(
    text: str,
    start: int,
    end: int,
    references: list[Span],
) -> Iterator[_Token]:
    position = start
    for ref_start, ref_end in [*references, (end, end)]:
        for match in _TOKEN.finditer(text, position, ref_start):
            yield _Token(_code(match), *match.span())
        if ref_start < end:
            is_link = text[ref_start:ref_end] == "["
            code = NoteCode.LINK if is_link else NoteCode.REFERENCE
            yield _Token(code, ref_start, ref_end)
        position = ref_end


def _code(match: re.Match[str]) -> NoteCode:
    kind = match.lastgroup or ""
    if kind != "word":
        return NoteCode[kind]
    word = match[0].lower().replace("’", "'")
    if _DUP.fullmatch(word):
        return NoteCode.DUPLICATE
    return _CODES.get(word, NoteCode.WORD)
