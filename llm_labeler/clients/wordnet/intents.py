"""Questions about one thing: other wordings (positives), and questions with another intent (negatives).

Questions about illnesses, such as about treatments, don't fit everything that has a cause or can be
prevented. So a general question never becomes a question about an illness.
"""

from __future__ import annotations

import re

from llm_labeler.records import Polarity
from pairkit.base.system.seeded import keyed_hash


def _questions_by_intent(table: str) -> dict[str, list[str]]:
    intents = re.findall(r"(\w+):([^:]+\?)", table)
    return {intent: re.findall(r"\S[^?]+\?", " ".join(questions.split())) for intent, questions in intents}


_ANYTHING = _questions_by_intent("""
    cause: What causes {x}? What are the causes of {x}? What is the reason for {x}? What is the cause of
        {x}?
    prevention: How can {x} be prevented? How to prevent {x}? What can be done to avoid {x}? Is there a
        way to prevent {x}?
    frequency: How common is {x}? How often does {x} occur? How many people are affected by {x}? How
        many people have {x}?
    consequence: What are the complications of {x}? What problems can {x} lead to? Which complications
        can {x} have? What can be the consequences of {x}?
""")
_ILLNESS = _questions_by_intent("""
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
_ALL = _ANYTHING | _ILLNESS
_THING = r"(?P<x>(?!(?:it|this|that|these|those|they|them)\b)(?:(?! - )[^?;:]){3,80}?)"
_MAYBE_PLURAL = re.compile(r".*[^siu]s(?: \(.*\))?", re.IGNORECASE)
_OF_ONE = re.compile(r"\b(?:is|does) \{x\}", re.IGNORECASE)
_SHAPES = [
    (intent, re.compile(re.escape(wording[:-1]).replace(r"\{x\}", _THING) + r"\s*\?+", re.IGNORECASE))
    for intent, wordings in _ALL.items()
    for wording in wordings
]


def intent_questions(text: str, polarity: Polarity) -> list[str]:
    """Shuffled questions about the same thing, with the same (positive) or another intent (negative)."""
    for intent, shape in _SHAPES:
        match = shape.fullmatch(text)
        if match is None:
            continue
        intents, thing = _ALL if intent in _ILLNESS else _ANYTHING, match["x"].strip()
        chosen = [
            wording.format(x=thing)
            for name, wordings in intents.items()
            if (name == intent) == (polarity == "positive")
            for wording in wordings
            if not (_MAYBE_PLURAL.fullmatch(thing) and _OF_ONE.search(wording))
        ]
        reworded = [question for question in chosen if not shape.fullmatch(question)]
        return sorted(reworded, key=lambda question: keyed_hash(0, text, question))
    return []
