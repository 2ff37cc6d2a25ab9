"""Other wordings of questions, and questions with another intent.

The table `questions.txt` rephrases common questions. Questions about an intent, such as causes or treatments,
have other wordings (positives) and other intents (negatives). Intents of illnesses don't fit everything that
has a cause or can be prevented, so a question about causes never becomes one about symptoms. A question such as
"Who gets {x}?" is taken to be about an illness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import filterfalse

from llm_labeler.clients.wordnet.substitutions import parse, read_table
from llm_labeler.clients.wordnet.tagged_sentence import capital
from llm_labeler.records import Polarity
from pairkit.base.system.seeded import keyed_hash

_PARTS = {
    "x": r"[^?;:]{2,80}?",
    "do": r"(?!be\b)[^?]+?",
    "word": r"\w+",
    "ing": r"\w+ing",
    "term": r"(?!(?:the|your|my|a|an|it|this|that|there)\b)[\w-]+(?: [\w-]+)?",
}

# Neither a pronoun nor with a second question, such as "asthma and how is it treated".
_SUBJECT = (
    r"(?P<x>(?!(?:it|this|that|these|those|they|them|me|us|you|him)\b)"
    r"(?:(?! - | and (?:how|what|why|who|is|are|can|does|do)\b)[^?;:]){3,80}?)"
)
_MAYBE_PLURAL = re.compile(r".*[^siu]s(?: \(.*\))?", re.IGNORECASE)
_OF_ONE = re.compile(r"\b(?:is|does) \{x\}", re.IGNORECASE)


def _questions_by_intent(table: str) -> dict[str, list[str]]:
    """The questions of each intent, from a table such as `cause: What causes {x}? …`."""
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


def rephrased(question: str) -> Iterator[tuple[str, float]]:
    """Other wordings of a question with their confidences; nothing for unknown questions."""
    for pattern, wording, confidence in _rules():
        match = pattern.fullmatch(question)
        if match:
            parts = {name: part.strip() for name, part in match.groupdict().items()}
            mark = match["end"][:1]
            yield capital(wording.format_map(parts)) + mark, confidence


@cache
def _rules() -> Sequence[tuple[re.Pattern[str], str, float]]:
    """The pattern, the other wording and the confidence of each rule."""
    rules = []
    for left, right, confidence in parse(read_table("questions")):
        wording = re.sub(
            r"\\\{(\w+)\\\}",
            lambda part: f"(?P<{part[1]}>{_PARTS[part[1]]})",
            re.escape(left),
        )
        pattern = re.compile(rf"{wording}\s*(?P<end>\?*)", re.IGNORECASE)
        rules.append((pattern, right, confidence))
    return rules


def intent_questions(text: str, polarity: Polarity) -> list[str]:
    """Shuffled questions about the same thing, with the same (positive) or another intent (negative)."""
    for shape, intent in _shapes().items():
        match = shape.fullmatch(text)
        if match:
            questions = _questions(match["x"].strip(), intent, polarity)
            others = filterfalse(shape.fullmatch, questions)
            return sorted(others, key=partial(keyed_hash, 0, text))
    return []


@cache
def _shapes() -> Mapping[re.Pattern[str], str]:
    """The intent of each question, by the question's pattern."""
    shapes = {}
    for intent, wordings in _INTENTS.items():
        for wording in wordings:
            question = re.escape(wording[:-1]).replace(r"\{x\}", _SUBJECT)
            shapes[re.compile(rf"{question}\s*\?+", re.IGNORECASE)] = intent
    return shapes


def _questions(thing: str, intent: str, polarity: Polarity) -> Iterator[str]:
    """Questions about a thing, with this (positive) or another intent (negative)."""
    may_be_plural = _MAYBE_PLURAL.fullmatch(thing)
    intents = _INTENTS if intent in _OF_ILLNESS else _OF_ANYTHING
    for name, wordings in intents.items():
        if (name == intent) == (polarity == "positive"):
            for wording in wordings:
                if not may_be_plural or not _OF_ONE.search(wording):
                    yield wording.format(x=thing)
