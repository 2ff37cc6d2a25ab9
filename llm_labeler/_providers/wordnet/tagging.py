"""What part each word plays, as HanTa's model of the British National Corpus says, in one letter a token.

| code | stands for | as in | BNC's tags |
|---|---|---|---|
| `D` | determiner, possessive, quantifier before a noun | the, its, many | AT0 DPS DT0 |
| `P` | pronoun | it, they, someone | PNP PNI PNX, DT0 with no noun after it |
| `E` | there, that something is | there are | EX0 |
| `I` | preposition | of, during | PRP PRF |
| `C` | coordination | and, or, but | CJC |
| `S` | subordination | if, because | CJS CJT |
| `W` | relative or question word | who, which | PNQ AVQ DTQ |
| `T` | to, before a verb | to prevent | TO0 |
| `M` | modal | may, cannot | VM0 |
| `B` `H` `O` | to be, to have, to do; finite | is, has, does | VBB VBZ VBD, VH., VDB VDZ VDD |
| `b` | to be; not finite | be, been | VBI VBN VBG |
| `N` | not | not | XX0 |
| `R` | adverb | often | AV0 AVP |
| `J` | adjective | severe | AJ0 AJC AJS |
| `n` `s` | noun, singular and plural | cell, cells | NN0 NN1 NP0, NN2 |
| `#` | number | 12, three | CRD ORD |
| `v` `z` | verb, base form and third person | cause, causes | VVB VVI, VVZ |
| `d` `e` `g` | verb, past, participle in -ed, in -ing | began, begun, beginning | VVD, VVN, VVG |
| `,` `.` | lesser break, end | ; ( - | |
| `x` | what is no word | an address | |
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from HanTa.HanoverTagger import HanoverTagger

from llm_labeler._providers.wordnet.morphology import lemmas

_TAGS = {
    "D": "AT0 DPS DT0", "P": "PNP PNI PNX", "E": "EX0", "I": "PRP PRF", "C": "CJC", "S": "CJS CJT",
    "W": "PNQ AVQ DTQ", "T": "TO0", "M": "VM0", "B": "VBB VBZ VBD", "b": "VBI VBN VBG",
    "H": "VHB VHZ VHD VHI VHN VHG", "O": "VDB VDZ VDD", "N": "XX0", "R": "AV0 AVP", "J": "AJ0 AJC AJS ORD",
    "#": "CRD", "s": "NN2", "v": "VVB VVI VDI", "z": "VVZ", "d": "VVD", "e": "VVN VDN", "g": "VVG VDG",
}  # fmt: skip
_CODES = {tag: code for code, tags in _TAGS.items() for tag in tags.split()}
_NUMBER = re.compile(r"[\d.,/%]*\d[\d.,/%-]*|[a-z]*\d[\w-]*")
_FOREIGN = re.compile(r".*(?:@|://|www\.|\w/\w).*")
_WHOLE = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall"}
_COLLECTIVE = frozenset(("people", "police", "data"))


def codes(words: tuple[str, ...]) -> str:
    """One letter a token."""
    found: list[str] = []
    tags = _tags(words)
    for word, tag in zip(words, tags, strict=True):
        found.append(_code(word, tag, found[-1] if found else "^"))
    for place, tag in enumerate(tags):
        if tag == "DT0" and "".join(found[place + 1 : place + 2]) not in tuple("JnsDgeR#"):
            found[place] = "P"
    return "".join(found)


def is_name(words: tuple[str, ...], place: int) -> bool:
    """Whether a token is a proper name, also at the beginning, where all words have capitals."""
    return _tags(words)[place] == "NP0"


@lru_cache(maxsize=64)
def _tags(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_tagger().tag_sent([_spoken(word) for word in words], taglevel=0))


def _spoken(word: str) -> str:
    """The part of a word that the model knows: `do` of `don't`, `body` of `body's`."""
    plain = word.replace("’", "'")
    if plain.lower() in _WHOLE:
        return _WHOLE[plain.lower()]
    return plain.removesuffix("n't").partition("'")[0] or plain


def _code(word: str, tag: str, before: str) -> str:
    low = word.lower()
    if not any(map(str.isalnum, word)) and word not in "%&":
        return "." if word in ".!?" else ","
    if _NUMBER.fullmatch(low):
        return "#"
    if _FOREIGN.fullmatch(low):
        return "x"
    code = _CODES.get(tag, "n")
    # Where the form of the word says otherwise:
    if code == "s" and not low.endswith("s") and lemmas(low, "n")[:1] == (low,):
        return "n"
    if code == "J" and low.endswith("ing") and before in "BbR" and lemmas(low, "v"):
        return "g"
    return "s" if low in _COLLECTIVE else code


@cache
def _tagger() -> HanoverTagger:
    return HanoverTagger("morphmodel_en.pgz")
