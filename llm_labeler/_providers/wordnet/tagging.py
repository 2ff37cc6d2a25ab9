"""What part each word plays, as HanTa's model of the British National Corpus says, in one letter a token."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from HanTa.HanoverTagger import HanoverTagger

from llm_labeler._providers.wordnet.morphology import lemmas

# The code, and the corpus's tags that it stands for; `,` and `.` are a lesser break and an end, `x` no word.
_TAGS = {
    "D": "AT0 DPS DT0",  # determiner, possessive, quantifier before a noun: the, its, many
    "P": "PNP PNI PNX",  # pronoun: it, they, someone; also DT0 with no noun after it
    "E": "EX0",  # there, that something is
    "I": "PRP PRF",  # preposition: of, during
    "C": "CJC",  # coordination: and, or, but
    "S": "CJS CJT",  # subordination: if, because
    "W": "PNQ AVQ DTQ",  # relative or question word: who, which
    "T": "TO0",  # to, before a verb
    "M": "VM0",  # modal: may, cannot
    "B": "VBB VBZ VBD",  # to be; finite
    "b": "VBI VBN VBG",  # to be; not finite
    "H": "VHB VHZ VHD VHI VHN VHG",  # to have
    "O": "VDB VDZ VDD",  # to do; finite
    "N": "XX0",  # not
    "R": "AV0 AVP",  # adverb: often
    "J": "AJ0 AJC AJS ORD",  # adjective: severe
    "#": "CRD",  # number: 12, three
    "n": "NN0 NN1 NP0",  # noun: cell; and whatever has none of these tags
    "s": "NN2",  # plural noun: cells
    "v": "VVB VVI VDI",  # verb, base form: cause
    "z": "VVZ",  # third person: causes
    "d": "VVD",  # past: began
    "e": "VVN VDN",  # participle: begun
    "g": "VVG VDG",  # participle in -ing
}
_CODES = {tag: code for code, tags in _TAGS.items() for tag in tags.split()}
_NUMBER = re.compile(r"[.,/%]*\d[\d.,/%-]*|[a-z]*\d[\w-]*")
_FOREIGN = re.compile(r".*(?:@|://|www\.|\w/\w).*")
_WHOLE = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall"}
_COLLECTIVE = frozenset(("people", "police", "data"))
_LONGEST = 60  # letters the model is shown of a word, as its time grows with their square


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
    plain = word[:_LONGEST].replace("’", "'")
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
