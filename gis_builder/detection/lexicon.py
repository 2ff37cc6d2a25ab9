"""The words that matter in talk about duplicates, and their codes; a sentence becomes a string of codes."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Code(StrEnum):
    """What a token stands for; one letter each, so that patterns over a sentence are regular expressions."""

    REFERENCE = "R"  # #12, a link to an issue, "issue 12"
    DUPLICATE = "D"  # the noun: dup, dupe, /duplicate, duplikat
    DUPLICATES = "d"  # the verb in the present, the plural: duplicates, dupes
    DUPLICATED = "Z"  # the verb in the past: duplicated
    HAS_DUPLICATES = "n"  # others duplicate it: has many duplicates
    FAVOUR = "F"  # another is preferred: in favour of, superseded by, continued in
    MOVED = "m"  # moved to another: merged into, moved to
    COVERS = "f"  # another takes this in: supersedes, covers, tracks
    TRACKED = "K"  # known elsewhere: tracked in, covered by
    PART_OF = "P"  # a part of another: part of, subsection of
    REPORTED = "A"  # known already: already reported, reported as
    SAME_AS = "S"  # like another: same issue as, identical to
    SAME = "s"  # the same issue
    SIMILAR_TO = "l"  # much like another: very similar to
    THIS = "T"  # this issue: this, it, that's
    THAT_ONE = "O"  # the issue just named: that one, the above, ^
    CORRECTION = "c"  # I meant, make that
    IS = "V"  # is, was, becomes
    NOT = "N"  # isn't, don't, never
    MAYBE = "H"  # seems, I think, looks like
    IF = "I"  # on a condition, a request: if, whether, please
    UNDECIDED = "Q"  # hard to tell, who knows
    YES = "Y"  # indeed, agreed, you're right
    NO = "B"  # no, as an answer: nope, no it isn't
    THANKS = "y"  # surprise, thanks, regret: oh, thanks, sorry
    CLOSE = "C"  # closing, closed
    REOPEN = "U"  # reopening
    KEEP_OPEN = "k"  # not to close: leave this open, won't close
    JOKE = "j"  # not meant: just kidding, /s
    FIXED = "X"  # fixed, or no bug: fixed, works now, by design
    RELATED = "L"  # similar, linked
    DIFFERENT = "E"  # unrelated, has nothing to do with
    SEARCH = "G"  # find, looked
    ALSO = "M"  # additionally
    WHICH = "W"  # a relative: which, whose
    SEE = "e"  # cf, check, per
    OF = "o"  # of, to, with
    BY = "b"  # by, in, at
    AS = "a"  # as, als
    ARTICLE = "x"  # a, the, one
    ISSUE = "i"  # a noun for an issue: issue, bug, report
    FILLER = "J"  # a word that adds nothing: just, basically, now
    AND = "&"  # and, or, plus, +
    COMMA = ","  # a lesser break: comma, colon, bracket, line break
    QUESTION = "?"  # ?
    WORD = "w"  # any other word: window
    STOP = "."  # between the sentences of a text


_NAME = re.compile(r"[A-Z][A-Z_]+")


def code_pattern(pattern: str, codes: type[StrEnum] = Code) -> re.Pattern[str]:
    """Compile a regular expression over codes that is written with their names and with blanks."""
    return re.compile(_NAME.sub(lambda name: re.escape(codes[name[0]]), pattern).replace(" ", ""))


_WORDS_BY_CODE = {
    Code.DUPLICATE: """
        duplicate dup dupe duplicat duplikat duplikát duplikaat duplikatem doppelt doublon duplicado
        duplicada duplicato duplicaat dublett dubblett dubbel dobbel дубликат дубликатом дубль дублирует
        дупликат
    """,
    Code.DUPLICATES: "duplicates dups dupes dup's duplikate doublons duplicados",
    Code.DUPLICATED: "duplicated duped dupped dup'd dupe'd",
    Code.COVERS: """
        supersedes superseeds supercedes supersede subsumes subsume covers captures encompasses tracks
    """,
    Code.THIS: "this it it's its this's mine these thats",
    Code.IS: "is was are be being been were becomes remains ist est es è é jest ser",
    Code.NOT: """
        not n't isn't isnt wasn't aren't don't dont doesn't doesnt didn't didnt wouldn't never neither
        cannot can't cant couldn't no hardly despite disagree nicht kein keine keiner pas não nao nie не
    """,
    Code.MAYBE: """
        maybe probably possibly possible potentially potential might may could perhaps likely presumably
        apparently seems seem seemed appears appear sounds suspect suspected guess think believe assume
        presume imagine suspiciously looks look would wonder wondering arguably semi quasi near almost
        partial partially kinda vielleicht wahrscheinlich peut-être quizás talvez возможно похоже
    """,
    Code.IF: "if whether unless until should please wenn falls ob si se если",
    Code.CLOSE: """
        closing closed close closes schließe schliesse geschlossen ferme fermé cierro cerrando cerrado
        fechando fecho chiudo zamykam закрываю закрыто
    """,
    Code.REOPEN: "reopen reopening reopened re-opening re-opened re-open",
    Code.FIXED: """
        fixed fixes fix fixing resolved resolves resolve solved solves solve landed merged implemented
        works working repaired addressed done
    """,
    Code.RELATED: """
        related relates similar relevant linked connected reminiscent resembles related-to ähnlich
    """,
    Code.DIFFERENT: """
        different differs differ difference distinct separate unrelated independent orthogonal otherwise
    """,
    Code.YES: """
        yes yep yeah yup ya yea indeed right agreed agree correct confirmed confirm exactly sure true
        definitely ja oui sí sì да
    """,
    Code.THANKS: """
        oops whoops woops ah oh d'oh doh ack sorry aha ok okay dang damn argh hah gah bah aw aww shoot thanks
        thank thx ty merci danke gracias obrigado
    """,
    Code.NO: "nah nope",
    Code.SEARCH: "find search searched searching searches look-up looked",
    Code.ALSO: "also additionally too moreover",
    Code.WHICH: "which whose",
    Code.SEE: "see cf check per ref follow siehe voir véase ver vide",
    Code.OF: "of to with against with: from von vom zu zur de del da do du di dello della van av af des",
    Code.BY: "by in at on under into through via over here there bei durch",
    Code.AS: "as als comme como come",
    Code.ARTICLE: "a an the another yet one ein eine einen un une uno una um uma o our my",
    Code.ISSUE: """
        issue issues bug bugs ticket tickets report reports problem request thread thing ice crash item
        topic feature-request regression
    """,
    Code.FILLER: """
        just basically essentially really again actually effectively simply clearly obviously certainly
        surely pretty much very already then now so thus therefore hence still exact same-ish only i'm
        am i i'd i'll i've we we'll gonna going instead anyway more-or-less technically in-fact
    """,
    Code.AND: "and or und et y e i/or plus as-well-as",
}
WORDS = {word: code for code, words in _WORDS_BY_CODE.items() for word in words.split()}

# Words one slip away from "duplicate" that mean something else.
_NO_SLIP = frozenset(
    {"duplication", "duplicating", "deduplicate", "duplex", "duplicates", "duplicated", "replicate"}
)
_MOST_SLIPS = 2


@lru_cache(maxsize=1 << 16)
def code_of(word: str) -> Code:
    """The code of one lower-case word; slips of the pen in "duplicate" count as the word."""
    code = WORDS.get(word)
    if code is not None:
        return code
    if word.endswith("n't"):
        return Code.NOT
    if word.endswith(("'s", "'re")):
        return Code.THIS if word in ("that's", "it's", "they're") else Code.WORD
    if "-dup" in word:
        return code_of(word.rpartition("-")[2])
    return _slip_code(word)


def _slip_code(word: str) -> Code:
    if word[:1] != "d" or not 6 <= len(word) <= 12 or not {"p", "b"} & set(word) or word in _NO_SLIP:
        return Code.WORD
    if _slips(word, "duplicate") <= _MOST_SLIPS and word[-1] not in "ds":
        return Code.DUPLICATE
    if _slips(word, "duplicates") <= _MOST_SLIPS and word.endswith("s"):
        return Code.DUPLICATES
    return Code.DUPLICATED if _slips(word, "duplicated") <= _MOST_SLIPS and word.endswith("d") else Code.WORD


def _slips(word: str, meant: str) -> int:
    """Edit distance with insertions, deletions, substitutions and swaps of neighbours (each 1)."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(word, 1):
        before, last = row, before
        row = [i]
        for j, wanted in enumerate(meant, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == meant[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
