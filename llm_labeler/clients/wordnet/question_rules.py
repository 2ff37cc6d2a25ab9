"""Make questions about a passage, and other questions about the thing that a question is about.

A passage's first sentence has to state what an illness is, its causes, symptoms, treatment, diagnosis or
frequency. It answers the questions of this topic, the positives. Questions of another topic are negatives if
no word of the passage hints at the topic.

Other wordings of a question are positives, questions with another intent negatives. Questions about
illnesses, such as about treatments, don't fit everything that has a cause or can be prevented. So a general
question never becomes a question about an illness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from llm_labeler.clients.wordnet.roles import has_odd_plural, within
from llm_labeler.clients.wordnet.tagged_sentence import (
    WITH_PHRASES,
    TaggedSentence,
    is_plural,
    word_set,
)
from llm_labeler.records import Polarity
from pairkit.base.system.seeded import keyed_hash

_FIRST = re.compile(r"[^.?!]{8,400}[.](?=\s|$)")
_THING = re.compile(rf"({WITH_PHRASES})(?=[MBHOzdv]|RB|R[zdv])")
_ABOUT = re.compile(rf"([ns])I({WITH_PHRASES})(?=[MBHOzdv])")
_NO_NAME = word_set(
    """
    this that these those it they he she you we other others some many most all another such each
    treatment treatments symptom symptoms cause causes people patients doctors researchers scientists type
    types form forms
    part parts number example examples condition disorder disease problem case cases risk
    """
)
_OWNED = word_set("the your their its our his her my")
# Things that have causes, symptoms and treatments.
_ILLNESS = word_set(
    """
    condition disorder disease syndrome infection cancer tumor illness inflammation defect abnormality
    deficiency injury narrowing deletion conditions disorders diseases infections cancers tumors illnesses
    abnormalities
    """
)
_SINGULAR = word_set("is was has affects occurs results")
_MAX_WORDS = 8  # of a name

_HEADS = {
    **dict.fromkeys(("symptom", "symptoms", "signs"), "symptom"),
    **dict.fromkeys(("cause", "causes"), "cause"),
    **dict.fromkeys(("treatment", "treatments"), "treatment"),
    **dict.fromkeys(("prevalence", "frequency", "incidence"), "frequency"),
    "diagnosis": "diagnosis",
}
# Words of sentences that answer nothing.
_OPEN = word_set("unknown unclear uncertain variable depend depends dependent")
_VERBS = word_set("include includes are is")
_COUNTING = word_set("in percent %")
_OCCURS = ("affects ", "affect ", "occurs ", "occur ")
_DEFINED = re.compile("BDR?[Jeng]*[ns]")  # codes: "is a rare disease"
_VERB_PHRASES = {
    "cause": ("is caused by ", "are caused by ", "results from ", "result from "),
    "treatment": ("is treated ", "are treated ", "can be treated ", "may be treated "),
    "diagnosis": ("is diagnosed ", "are diagnosed "),
}

_SUBJECT = (
    r"(?P<x>(?!(?:it|this|that|these|those|they|them)\b)(?:(?! - )[^?;:]){3,80}?)"
)
_MAYBE_PLURAL = re.compile(r".*[^siu]s(?: \(.*\))?", re.IGNORECASE)
_OF_ONE = re.compile(r"\b(?:is|does) \{x\}", re.IGNORECASE)


class _Topic(NamedTuple):
    """Questions of a topic, and prefixes of words that hint at it."""

    questions: tuple[str, ...]
    hints: tuple[str, ...]

    @classmethod
    def of(cls, questions: str, hints: str) -> _Topic:
        """Split the questions at `|`, and the hints at spaces."""
        return cls(tuple(questions.split(" | ")), tuple(hints.split()))


_TOPICS = {
    "what": _Topic.of("What {is} {x}?", ""),
    "cause": _Topic.of(
        "What causes {x}? | What {is} {x} caused by?",
        "caus result due lead trigger becaus mutation inherit genetic produc",
    ),
    "symptom": _Topic.of(
        "What are the symptoms of {x}? | Which symptoms {does} {x} have?",
        "symptom sign feel pain characteri experienc develop feature",
    ),
    "treatment": _Topic.of(
        "How {is} {x} treated? | What is the treatment for {x}?",
        "treat therap medic drug surg cure remov manag reliev help",
    ),
    "frequency": _Topic.of(
        "How common {is} {x}?",
        "common rare frequen percent affect preval incidence people often estimat",
    ),
    "diagnosis": _Topic.of(
        "How {is} {x} diagnosed?",
        "diagnos test exam detect biops imag scan identif find",
    ),
}


class _Answered(NamedTuple):
    """The thing that a sentence is about, its topic, and whether the thing is plural."""

    thing: str
    topic: str
    plural: bool


def queries(passage: str, polarity: Polarity, size: int) -> list[str]:
    """Up to `size` questions that a passage answers (positive), or only seems to answer (negative)."""
    first = _FIRST.match(" ".join(passage.split()))
    answered = next(_answered(TaggedSentence(first[0])), None) if first else None
    if answered is None:
        return []
    forms = {
        "x": answered.thing,
        "is": "are" if answered.plural else "is",
        "does": "do" if answered.plural else "does",
    }
    if polarity == "positive":
        questions = _TOPICS[answered.topic].questions
        return [question.format_map(forms) for question in questions[:size]]
    words = set(re.findall(r"[a-z]+", passage.lower()))
    unmentioned = []
    for name, topic in _TOPICS.items():
        is_hinted = any(word.startswith(topic.hints) for word in words)
        if name not in (answered.topic, "what") and not is_hinted:
            unmentioned.append(name)
    unmentioned.sort(key=lambda name: keyed_hash(0, passage, name))
    return [_TOPICS[name].questions[0].format_map(forms) for name in unmentioned[:size]]


def _answered(sentence: TaggedSentence) -> Iterator[_Answered]:
    """What a sentence answers, by its beginning."""
    low = sentence.low
    if sentence.is_negative or not sentence.codes.endswith("."):
        return
    if not _OPEN.isdisjoint(low):
        return
    about = _ABOUT.match(sentence.codes, 1 if sentence.word_at(0) == "the" else 0)
    if about and not _VERBS.isdisjoint(low[about.end() : about.end() + 2]):
        start, end = about.span(2)
        head = low[about.start(1)]
        if head in _HEADS and _is_name(sentence, start, end):
            plural = is_plural(sentence, start, end)
            yield _Answered(sentence.slice(start, end), _HEADS[head], plural)
    thing = _THING.match(sentence.codes)
    if thing and _is_name(sentence, *thing.span(1)):
        end = thing.end(1)
        topic = _topic(sentence, end)
        if topic:
            is_single = _SINGULAR & {*low[end : end + 2]} or has_odd_plural(sentence)
            plural = is_plural(sentence, 0, end) and not is_single
            yield _Answered(within(sentence, end), topic, plural)


def _topic(sentence: TaggedSentence, start: int) -> str:
    """The topic of a sentence by the words after the thing; empty if there is none."""
    low = sentence.low[start:]
    codes = sentence.codes[start:]
    words = ""
    for word, code in zip(low, codes, strict=True):
        if code != "R":
            words += f"{word} "
    for topic, beginnings in _VERB_PHRASES.items():
        if words.startswith(beginnings):
            return topic
    beginning = low[:8]
    counts = "#" in codes[:8] and not _COUNTING.isdisjoint(beginning)
    if words.startswith(_OCCURS) and counts and "age" not in beginning:
        return "frequency"
    defined = _DEFINED.match(codes)
    if defined and low[1] in ("a", "an") and low[defined.end() - 1] in _ILLNESS:
        return "what"
    return ""


def _is_name(sentence: TaggedSentence, start: int, end: int) -> bool:
    low = sentence.low[start:end]
    if len(low) > _MAX_WORDS or sentence.codes[start] in "P#g":
        return False
    if low[0] in _NO_NAME | _OWNED:
        return False
    # A heading that precedes the sentence repeats the name.
    return len({*low}) == len(low) and not low[0].endswith("ing")


def _questions_by_intent(table: str) -> dict[str, list[str]]:
    return {
        intent: re.findall(r"\S[^?]+\?", " ".join(questions.split()))
        for intent, questions in re.findall(r"(\w+):([^:]+\?)", table)
    }


_OF_ANYTHING = _questions_by_intent("""
    cause: What causes {x}? What are the causes of {x}? What is the reason for {x}? What is the cause of
        {x}?
    prevention: How can {x} be prevented? How to prevent {x}? What can be done to avoid {x}? Is there a
        way to prevent {x}?
    frequency: How common is {x}? How often does {x} occur? How many people are affected by {x}? How
        many people have {x}?
    consequence: What are the complications of {x}? What problems can {x} lead to? Which complications
        can {x} have? What can be the consequences of {x}?
""")
_OF_ILLNESS = _questions_by_intent("""
    symptom: What are the symptoms of {x}? What are the signs of {x}? Which symptoms does {x} have? How
        can one recognize {x}?
    treatment: What are the treatments for {x}? How is {x} treated? What is the treatment for {x}? What
        can be done about {x}?
    test: How to diagnose {x}? How is {x} diagnosed? Which tests are there for {x}? How do doctors find
        out whether somebody has {x}?
    risk: Who is at risk for {x}? Who gets {x}? Which people are likely to get {x}? Who is affected by
        {x}?
    outlook: What is the outlook for {x}? What is the prognosis of {x}? What can people with {x} expect
        in the long run? What happens to people with {x} in the long run?
    inheritance: Is {x} inherited? Can {x} be inherited? Does {x} run in families? Can parents pass {x}
        on to their children?
""")
_INTENTS = _OF_ANYTHING | _OF_ILLNESS
# Each intent with the pattern of one of its questions.
_SHAPES = list[tuple[str, re.Pattern[str]]]()
for _intent, _wordings in _INTENTS.items():
    for _wording in _wordings:
        _question = re.escape(_wording[:-1]).replace(r"\{x\}", _SUBJECT)
        _shape = re.compile(rf"{_question}\s*\?+", re.IGNORECASE)
        _SHAPES.append((_intent, _shape))


def intent_questions(text: str, polarity: Polarity) -> list[str]:
    """Shuffled questions about the same thing, with the same (positive) or another intent (negative)."""
    for intent, shape in _SHAPES:
        match = shape.fullmatch(text)
        if match is None:
            continue
        thing = match["x"].strip()
        may_be_plural = _MAYBE_PLURAL.fullmatch(thing) is not None
        intents = _INTENTS if intent in _OF_ILLNESS else _OF_ANYTHING
        questions = []
        for name, wordings in intents.items():
            if (name == intent) != (polarity == "positive"):
                continue
            for wording in wordings:
                question = wording.format(x=thing)
                is_of_one = may_be_plural and _OF_ONE.search(wording)
                if not is_of_one and not shape.fullmatch(question):
                    questions.append(question)
        return sorted(questions, key=lambda question: keyed_hash(0, text, question))
    return []
