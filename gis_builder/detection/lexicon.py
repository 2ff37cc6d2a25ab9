"""The words that matter in talk about duplicates, each with the one-letter code that the grammar reads.

A sentence becomes a string of these codes (see `tokens`), so that the grammar's patterns stay short:

| code | stands for | as in |
|---|---|---|
| `R` | a reference | #12, a link to an issue, "issue 12" |
| `D` | the noun "duplicate" | dup, dupe, /duplicate, duplikat |
| `d` | the verb in the present, the plural | duplicates, dupes |
| `Z` | the verb in the past | duplicated |
| `n` | others duplicate it | has many duplicates |
| `F` | another is preferred | in favour of, superseded by, continued in |
| `m` | moved to another | merged into, moved to |
| `f` | another takes this in | supersedes, covers, tracks |
| `K` | known elsewhere | tracked in, covered by |
| `P` | a part of another | part of, subsection of |
| `A` | known already | already reported, reported as |
| `S` | like another | same issue as, identical to |
| `s` | alike | the same issue |
| `l` | much like another | very similar to |
| `T` | this issue | this, it, that's |
| `O` | the issue just named | that one, the above, ^ |
| `c` | a correction | I meant, make that |
| `V` | to be | is, was, becomes |
| `N` | not | isn't, don't, never |
| `H` | maybe | seems, I think, looks like |
| `I` | on a condition, a request | if, whether, please |
| `Q` | undecided | hard to tell, who knows |
| `Y` | yes | indeed, agreed, you're right |
| `B` | no, as an answer | nope, no it isn't |
| `y` | surprise, thanks, regret | oh, thanks, sorry |
| `C` | to close | closing, closed |
| `U` | to reopen | reopening |
| `k` | not to close | leave this open, won't close |
| `j` | not meant | just kidding, /s |
| `X` | fixed, or no bug | fixed, works now, by design |
| `L` | related | similar, linked |
| `E` | different | unrelated, has nothing to do with |
| `G` | to search | find, looked |
| `M` | also | additionally |
| `W` | a relative | which, whose |
| `e` | see | cf, check, per |
| `o` | of | of, to, with |
| `b` | by | by, in, at |
| `a` | as | as |
| `x` | an article | a, the, one |
| `i` | a noun for an issue | issue, bug, report |
| `J` | a word that adds nothing | just, basically, now |
| `&` | and, or | plus, + |
| `,` | a lesser break | comma, colon, bracket, line break |
| `?` | a question mark | ? |
| `w` | any other word | window |
"""

from __future__ import annotations

from functools import lru_cache

_WORDS_BY_CODE = {
    "D": """
        duplicate dup dupe duplicat duplikat duplikát duplikaat duplikatem doppelt doublon duplicado
        duplicada duplicato duplicaat dublett dubblett dubbel dobbel дубликат дубликатом дубль дублирует
        дупликат
    """,
    "d": "duplicates dups dupes dup's duplikate doublons duplicados",
    "Z": "duplicated duped dupped dup'd dupe'd",
    "f": "supersedes superseeds supercedes supersede subsumes subsume covers captures encompasses tracks",
    "T": "this it it's its this's mine these thats",
    "V": "is was are be being been were becomes remains ist est es è é jest ser",
    "N": """
        not n't isn't isnt wasn't aren't don't dont doesn't doesnt didn't didnt wouldn't never neither
        cannot can't cant couldn't no hardly despite disagree nicht kein keine keiner pas não nao nie не
    """,
    "H": """
        maybe probably possibly possible potentially potential might may could perhaps likely presumably
        apparently seems seem seemed appears appear sounds suspect suspected guess think believe assume
        presume imagine suspiciously looks look would wonder wondering arguably semi quasi near almost
        partial partially kinda vielleicht wahrscheinlich peut-être quizás talvez возможно похоже
    """,
    "I": "if whether unless until should please wenn falls ob si se если",
    "C": """
        closing closed close closes schließe schliesse geschlossen ferme fermé cierro cerrando cerrado
        fechando fecho chiudo zamykam закрываю закрыто
    """,
    "U": "reopen reopening reopened re-opening re-opened re-open",
    "X": """
        fixed fixes fix fixing resolved resolves resolve solved solves solve landed merged implemented
        works working repaired addressed done
    """,
    "L": """
        related relates similar relevant linked connected reminiscent resembles related-to ähnlich
    """,
    "E": "different differs differ difference distinct separate unrelated independent orthogonal otherwise",
    "Y": """
        yes yep yeah yup ya yea indeed right agreed agree correct confirmed confirm exactly sure true
        definitely ja oui sí sì да
    """,
    "y": """
        oops whoops woops ah oh d'oh doh ack sorry aha ok okay dang damn argh hah gah bah aw aww shoot thanks
        thank thx ty merci danke gracias obrigado
    """,
    "B": "nah nope",
    "G": "find search searched searching searches look-up looked",
    "M": "also additionally too moreover",
    "W": "which whose",
    "e": "see cf check per ref follow siehe voir véase ver vide",
    "o": "of to with against with: from von vom zu zur de del da do du di dello della van av af des",
    "b": "by in at on under into through via over here there bei durch",
    "a": "as als comme como come",
    "x": "a an the another yet one ein eine einen un une uno una um uma o our my",
    "i": """
        issue issues bug bugs ticket tickets report reports problem request thread thing ice crash item
        topic feature-request regression
    """,
    "J": """
        just basically essentially really again actually effectively simply clearly obviously certainly
        surely pretty much very already then now so thus therefore hence still exact same-ish only i'm
        am i i'd i'll i've we we'll gonna going instead anyway more-or-less technically in-fact
    """,
    "&": "and or und et y e i/or plus as-well-as",
}
WORDS = {word: code for code, words in _WORDS_BY_CODE.items() for word in words.split()}

# Words one slip away from "duplicate" that mean something else.
_NO_SLIP = frozenset(
    {"duplication", "duplicating", "deduplicate", "duplex", "duplicates", "duplicated", "replicate"}
)
_MOST_SLIPS = 2


@lru_cache(maxsize=1 << 16)
def code_of(word: str) -> str:
    """The code of one lower-case word; slips of the pen in "duplicate" count as the word."""
    code = WORDS.get(word)
    if code is not None:
        return code
    if word.endswith("n't"):
        return "N"
    if word.endswith(("'s", "'re")):
        return {"that's": "T", "it's": "T", "they're": "T"}.get(word, "w")
    if "-dup" in word:
        return code_of(word.rpartition("-")[2])
    return _slip_code(word)


def _slip_code(word: str) -> str:
    if word[:1] != "d" or not 6 <= len(word) <= 12 or not {"p", "b"} & set(word) or word in _NO_SLIP:
        return "w"
    if _slips(word, "duplicate") <= _MOST_SLIPS and word[-1] not in "ds":
        return "D"
    if _slips(word, "duplicates") <= _MOST_SLIPS and word.endswith("s"):
        return "d"
    return "Z" if _slips(word, "duplicated") <= _MOST_SLIPS and word.endswith("d") else "w"


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
