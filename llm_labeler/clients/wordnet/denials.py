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
_PARTIAL = word_set(
    "some many several sometimes occasionally rarely certain other others another"
)
# `not` before one of these means something else: "is not only", "are not all".
_NARROWING = word_set("only just even all both either merely")
# Adverbs that can't follow `not`; `_AS_WELL` are dropped instead.
_UNDENIABLE = word_set(
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
_CONNECTING = word_set("because but so both ; while although")
_LONG = 45  # tokens
# Groups of codes.
_NOMINAL = frozenset("nsPE")
_AFTER_PAST = frozenset("DPITnsRJ#")
_PREDICATE = re.compile("BR*[Je]")
_CODES_OF_HAVE = {"has": "z", "had": "d"}
_AUXILIARIES = {"z": "does", "v": "do", "d": "did"}

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
_PHRASE = re.compile("[Jneg]*(?=[Jns])[ns]")  # codes after `no`


def denials(sentence: TaggedSentence) -> Iterator[Change]:
    """Negations of the main clause of an affirmative sentence."""
    verb = main_verb(sentence)
    start = main_start(sentence)
    if verb is None or start is None:
        return
    if not _NARROWING.isdisjoint(sentence.low[verb + 1 : verb + 3]):
        return
    if verb == start:
        yield from _forbidden(sentence, verb)
        return
    has_subject = not _NOMINAL.isdisjoint(sentence.codes[start:verb])
    if sentence.low[start] in _QUANTIFIED or not has_subject:
        return
    predicate = _PREDICATE.match(sentence.codes, verb)
    if predicate:
        end = predicate.end()
        adjective = sentence.low[end - 1]
        if is_prefixed(adjective):
            # "correct" is better than "not incorrect"
            yield Change(0.95, (Edit(end - 1, end, adjective[2:]),))
            return
    edits = _negated(sentence, verb)
    if edits:
        yield Change(_confidence(sentence, verb), edits)


def _forbidden(sentence: TaggedSentence, verb: int) -> Iterator[Change]:
    after = sentence.code_at(verb + 1)
    if not after or sentence.low[verb] in _NO_ORDER or sentence.low[verb + 1] == "of":
        return
    if has_later_verb(sentence.codes[verb + 1 :]):
        return  # a heading that begins with a noun
    if after in "DPI" or (after in "nsJgTR#" and sentence.codes[verb] == "b"):
        word = sentence.words[verb]
        if verb == 0:
            word = word.lower()
        yield Change(0.9, (Edit(verb, verb + 1, f"do not {word}"),))


def _negated(sentence: TaggedSentence, verb: int) -> Edits:
    code = sentence.codes[verb]
    word = sentence.low[verb]
    if code == "B" and sentence.codes[verb - 1] == "E":
        return _there_is_no(sentence, verb)
    after_adverbs = sentence.codes[verb + 1 :].lstrip("R")
    if code in "MB" or (code == "H" and after_adverbs.startswith(("e", "b", "d"))):
        return _with_not(sentence, verb, "cannot" if word == "can" else f"{word} not")
    if code == "O" or (code == "d" and sentence.code_at(verb + 1) not in _AFTER_PAST):
        return ()
    if code == "v" and sentence.codes[-1] not in ".,":
        return ()  # a heading, in which nouns may be tagged as verbs
    return _with_do(sentence, verb)


def _with_not(sentence: TaggedSentence, verb: int, text: str) -> Edits:
    if sentence.codes[verb - 1] == "R" and sentence.low[verb - 1] not in _AS_WELL:
        return ()  # "you always will not"
    end = verb + 1
    after = sentence.word_at(end)
    if after in _UNDENIABLE:
        return ()
    if after in _AS_WELL:
        end += 1
    return (Edit(verb, end, text), *_some_to_any(sentence, end))


def _with_do(sentence: TaggedSentence, verb: int) -> Edits:
    code = sentence.codes[verb]
    word = sentence.low[verb]
    if code == "H":
        code = _CODES_OF_HAVE.get(word, "v")
        base = "have"
    else:
        base = word if code == "v" else other_lemma(word)
    if base in ("", "be") or sentence.code_at(verb + 1) == "C":
        return ()
    first = verb
    while sentence.code_at(first - 1) == "R":
        first -= 1
    adverbs = sentence.low[first:verb]
    if not _UNDENIABLE.isdisjoint(adverbs):
        return ()
    kept = [adverb for adverb in adverbs if adverb not in _AS_WELL]
    negated = " ".join((_AUXILIARIES[code], "not", *kept, base))
    return (Edit(first, verb + 1, negated), *_some_to_any(sentence, verb + 1))


def _there_is_no(sentence: TaggedSentence, verb: int) -> Edits:
    end = verb + 1
    if sentence.word_at(end) == "also":
        end += 1
    if sentence.word_at(end) in _NUMEROUS:
        end += 1
    elif sentence.code_at(end) not in ("J", "n", "s"):
        return ()
    return (Edit(verb, end, f"{sentence.words[verb]} no"),)


def _some_to_any(sentence: TaggedSentence, index: int) -> Edits:
    if sentence.code_at(index) in ("v", "e"):
        index += 1
    if sentence.word_at(index) != "some":
        return ()
    return (Edit(index, index + 1, "any"),)


def _confidence(sentence: TaggedSentence, verb: int) -> float:
    confidence = 0.95
    if sentence.low[verb] in ("may", "might", "could"):
        confidence -= 0.05  # "may" and "may not" can both be true
    if sentence.codes[verb] in "dv":
        confidence -= 0.05
    if not _CONNECTING.isdisjoint(sentence.low[verb:]):
        confidence -= 0.1
    if not _PARTIAL.isdisjoint(sentence.low[:2]):
        confidence -= 0.25
    if re.search("C[zd]", sentence.codes[verb:]):
        confidence -= 0.1  # the verb after `and` is not negated
    if len(sentence.words) > _LONG:
        confidence -= 0.1
    return confidence


def assertions(sentence: TaggedSentence) -> Iterator[Change]:
    """Changes that drop one `not` or `no`."""
    verb = main_verb(sentence)
    for index in range(len(sentence.low)):
        edits = _affirmed(sentence, index)
        after = sentence.low[index + 1 :]
        if not edits or "until" in after or not _POLAR.isdisjoint(after[:3]):
            continue
        is_near_verb = verb is not None and abs(index - verb) <= 2
        if is_near_verb and sentence.low[0] in _PARTIAL:
            continue
        if "any" in after[:4]:
            any_index = index + 1 + after.index("any")
            edits = (*edits, Edit(any_index, any_index + 1, "some"))
        yield Change(0.93 if is_near_verb else 0.82, edits)


def _affirmed(sentence: TaggedSentence, index: int) -> Edits:
    word = sentence.low[index]
    before = sentence.codes[index - 1] if index else "^"
    contracted = _CONTRACTED.fullmatch(word)
    if contracted:
        return (Edit(index, index + 1, contracted[1]),)
    if word in _IRREGULAR:
        return (Edit(index, index + 1, _IRREGULAR[word]),)
    if word.removesuffix("n't") in _DO and word not in _DO:
        return _without_do(sentence, index, index + 1)
    if word == "not" and before == "O":
        return _without_do(sentence, index - 1, index + 1)
    has_or = "or" in sentence.low[index - 2 : index + 2]
    if word == "not" and before in "BMH" and not has_or:
        return (Edit(index, index + 1, ""),)
    if word == "no" and sentence.word_at(index + 1) == "longer" and before in "PnsBMH":
        return (Edit(index, index + 2, "still"),)
    if word == "no" and before in "HvzdBI^":
        return _without_no(sentence, index)
    return ()


def _without_do(sentence: TaggedSentence, start: int, adverbs: int) -> Edits:
    """Change `does not often cause` to `often causes`."""
    end = adverbs
    while sentence.code_at(end) == "R":
        end += 1
    if sentence.code_at(end) not in ("v", "H"):
        return ()
    if sentence.code_at(start - 1) in ("C", "T"):
        return ()
    auxiliary = sentence.low[start].removesuffix("n't")
    verb = inflected_verb(sentence.low[end], _DO[auxiliary])
    return (Edit(start, end + 1, " ".join((*sentence.words[adverbs:end], verb))),)


def _without_no(sentence: TaggedSentence, index: int) -> Edits:
    phrase = _PHRASE.match(sentence.codes, index + 1)
    if not phrase:
        return ()
    noun = phrase.end() - 1
    word = sentence.low[noun]
    if sentence.codes[noun] == "s":
        new = ""
        if index == 0 or sentence.code_at(index - 1) == "I":
            new = "some"
    elif word in _MASS or word.endswith(("ing", "ness", "ence")):
        new = "some"
    else:
        new = with_article_for(sentence.words[index + 1])
    return (Edit(index, index + 1, new),)
