"""Negate affirmative sentences, and make negated ones affirmative."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm_labeler.clients.wordnet.tagged_sentence import (
    Change,
    Edit,
    Edits,
    TaggedSentence,
    has_later_verb,
    main_start,
    main_verb,
    word_set,
)
from llm_labeler.clients.wordnet.wordnet_lexicon import (
    inflected_verb,
    is_prefixed,
    other_lemma,
    with_article_for,
)

# Negating the verb doesn't negate a sentence whose subject begins with one of these.
_QUANTIFIED = word_set(
    "all every each both either any anyone anybody everyone everything everybody only just almost nearly few"
)
# With these subjects, a sentence and its negation may both be true.
PARTIAL = word_set("some many several sometimes occasionally rarely certain other others another")
# `not` before one of these means something else: "is not only", "are not all".
_NARROWING = word_set("only just even all both either merely")
# Adverbs that can't follow `not`; `_AS_WELL` are dropped instead.
UNDENIABLE = word_set(
    """
    sometimes probably possibly perhaps likely still certainly only just mostly mainly primarily largely
    then now simply especially even already occasionally maybe once first again further most more much
    so too increasingly actually clearly best
    """
)
_AS_WELL = word_set("also too")
# Words that `no` replaces.
_NUMEROUS = word_set("a an some many several various multiple different numerous other")
_NO_ORDER = word_set("let thank see welcome please")


def denials(sentence: TaggedSentence) -> Iterator[Change]:
    """Negations of the main clause of an affirmative sentence."""
    verb = main_verb(sentence)
    start = main_start(sentence)
    if verb is None or start is None or _NARROWING & set(sentence.low[verb + 1 : verb + 3]):
        return
    if verb == start:
        yield from _forbidden(sentence, verb)
    elif sentence.low[start] not in _QUANTIFIED and set(sentence.codes[start:verb]) & set("nsPE"):
        adjective = re.compile("BR*[Je]").match(sentence.codes, verb)
        if adjective and is_prefixed(word := sentence.low[adjective.end() - 1]):
            # "correct" is better than "not incorrect"
            yield Change(0.95, (Edit(adjective.end() - 1, adjective.end(), word[2:]),))
        elif edits := _negated(sentence, verb):
            yield Change(_confidence(sentence, verb), edits)


def _forbidden(sentence: TaggedSentence, verb: int) -> Iterator[Change]:
    follows = sentence.codes[verb + 1 : verb + 2]
    if not follows or sentence.low[verb] in _NO_ORDER or sentence.low[verb + 1] == "of":
        return
    if has_later_verb(sentence.codes[verb + 1 :]):
        return  # a heading that begins with a noun
    if follows in "DPI" or (follows in "nsJgTR#" and sentence.codes[verb] == "b"):
        word = sentence.words[verb]
        yield Change(0.9, (Edit(verb, verb + 1, f"do not {word.lower() if verb == 0 else word}"),))


def _negated(sentence: TaggedSentence, verb: int) -> Edits:
    code = sentence.codes[verb]
    word = sentence.low[verb]
    after = sentence.codes[verb + 1 : verb + 2]
    if code == "B" and sentence.codes[verb - 1] == "E":
        return _there_is_no(sentence, verb)
    if code in "MB" or (
        code == "H" and sentence.codes[verb + 1 :].lstrip("R")[:1] in ("e", "b", "d")
    ):
        return _with_not(sentence, verb, "cannot" if word == "can" else f"{word} not")
    if code == "O" or (code == "d" and after not in tuple("DPITnsRJ#")):
        return ()
    if code == "v" and sentence.codes[-1] not in ".,":
        return ()  # a heading, in which nouns may be tagged as verbs
    return _with_do(sentence, verb)


def _with_not(sentence: TaggedSentence, verb: int, text: str) -> Edits:
    after = "".join(sentence.low[verb + 1 : verb + 2])
    if sentence.codes[verb - 1] == "R" and sentence.low[verb - 1] not in _AS_WELL:
        return ()  # "you always will not"
    if after in UNDENIABLE:
        return ()
    end = verb + 2 if after in _AS_WELL else verb + 1
    return (Edit(verb, end, text), *_some_to_any(sentence, end))


def _with_do(sentence: TaggedSentence, verb: int) -> Edits:
    code = sentence.codes[verb]
    word = sentence.low[verb]
    if code == "H":
        code = {"has": "z", "had": "d"}.get(word, "v")
        base = "have"
    else:
        base = word if code == "v" else other_lemma(word)
    if not base or base == "be" or sentence.codes[verb + 1 : verb + 2] == "C":
        return ()
    first = verb
    while first > 0 and sentence.codes[first - 1] == "R":
        first -= 1
    adverbs = sentence.low[first:verb]
    if UNDENIABLE & set(adverbs):
        return ()
    auxiliary = {"z": "does", "v": "do", "d": "did"}[code]
    words = [auxiliary, "not", *(adverb for adverb in adverbs if adverb not in _AS_WELL), base]
    return (Edit(first, verb + 1, " ".join(words)), *_some_to_any(sentence, verb + 1))


def _there_is_no(sentence: TaggedSentence, verb: int) -> Edits:
    end = verb + 1
    if sentence.low[end : end + 1] == ("also",):
        end += 1
    if sentence.low[end : end + 1] and sentence.low[end] in _NUMEROUS:
        end += 1
    elif sentence.codes[end : end + 1] not in tuple("Jns"):
        return ()
    return (Edit(verb, end, f"{sentence.words[verb]} no"),)


def _some_to_any(sentence: TaggedSentence, index: int) -> Edits:
    index += sentence.codes[index : index + 1] in ("v", "e")
    return (Edit(index, index + 1, "any"),) if sentence.low[index : index + 1] == ("some",) else ()


def _confidence(sentence: TaggedSentence, verb: int) -> float:
    confidence = 0.95
    if sentence.low[verb] in ("may", "might", "could"):
        confidence -= 0.05  # "may" and "may not" can both be true
    if sentence.codes[verb] in "dv":
        confidence -= 0.05
    if set(sentence.low[verb:]) & {"because", "but", "so", "both", ";", "while", "although"}:
        confidence -= 0.1
    if set(sentence.low[:2]) & PARTIAL:
        confidence -= 0.25
    if re.search("C[zd]", sentence.codes[verb:]):
        confidence -= 0.1  # the verb after `and` is not negated
    return confidence - 0.1 * (len(sentence.words) > 45)


# Words that need a `not` before them.
_POLAR = word_set(
    """
    yet either ever anymore until unless nor neither even necessarily much because enough only just but
    completely entirely fully all every both
    """
)
# Nouns without an article.
_MASS = word_set(
    "evidence information pain research damage proof food help medicine knowledge money time water blood data"
)
_CONTRACTED = re.compile(r"(is|are|was|were|could|would|should|have|has|had)n't")
_IRREGULAR = {"can't": "can", "cannot": "can", "won't": "will"}
_DO = {"do": "v", "does": "z", "did": "d"}


def assertions(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that drop one `not` or `no`."""
    main = main_verb(sentence)
    for index in range(len(sentence.low)):
        edits = _affirmed(sentence, index)
        after = sentence.low[index + 1 :]
        if edits and not set(after[:3]) & _POLAR and "until" not in after:
            near = main is not None and abs(index - main) <= 2
            any_ = index + 1 + after[:4].index("any") if "any" in after[:4] else None
            some = () if any_ is None else (Edit(any_, any_ + 1, "some"),)
            if not (near and sentence.low[0] in PARTIAL):
                yield Change(0.93 if near else 0.82, (*edits, *some))


def _affirmed(sentence: TaggedSentence, index: int) -> Edits:
    word = sentence.low[index]
    before = sentence.codes[index - 1] if index else "^"
    contracted = _CONTRACTED.fullmatch(word)
    if contracted or word in _IRREGULAR:
        return (Edit(index, index + 1, contracted[1] if contracted else _IRREGULAR[word]),)
    if word.removesuffix("n't") in _DO and word not in _DO:
        return _without_do(sentence, index, index + 1)
    if word == "not" and before == "O":
        return _without_do(sentence, index - 1, index + 1)
    if word == "not" and before in "BMH" and "or" not in sentence.low[index - 2 : index + 2]:
        return (Edit(index, index + 1, ""),)
    if word == "no" and sentence.low[index + 1 : index + 2] == ("longer",) and before in "PnsBMH":
        return (Edit(index, index + 2, "still"),)
    return _without_no(sentence, index) if word == "no" and before in "HvzdBI^" else ()


def _without_do(sentence: TaggedSentence, start: int, adverbs: int) -> Edits:
    """Change `does not often cause` to `often causes`."""
    end = adverbs
    while sentence.codes[end : end + 1] == "R":
        end += 1
    if sentence.codes[end : end + 1] not in ("v", "H") or (
        start and sentence.codes[start - 1] in "CT"
    ):
        return ()
    verb = inflected_verb(sentence.low[end], _DO[sentence.low[start].removesuffix("n't")])
    return (Edit(start, end + 1, " ".join((*sentence.words[adverbs:end], verb))),)


def _without_no(sentence: TaggedSentence, index: int) -> Edits:
    phrase = re.compile("[Jneg]*(?=[Jns])[ns]").match(sentence.codes, index + 1)
    if not phrase:
        return ()
    word = sentence.low[phrase.end() - 1]
    if sentence.codes[phrase.end() - 1] == "s":
        return (
            Edit(
                index, index + 1, "some" if index == 0 or sentence.codes[index - 1] == "I" else ""
            ),
        )
    is_mass = word in _MASS or word.endswith(("ing", "ness", "ence"))
    return (
        Edit(index, index + 1, "some" if is_mass else with_article_for(sentence.words[index + 1])),
    )
