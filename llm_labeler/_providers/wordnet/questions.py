"""Questions asked in other words."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"(?P<x>[^?;:]{2,80}?)"
_RULES = tuple(
    (re.compile(rf"{left}\s*(?P<end>\?*)\s*", re.IGNORECASE), right, sure)
    for left, right, sure in (
        (rf"what are the symptoms of {_NAME}", "Which symptoms does {x} have?", 0.95),
        (rf"which symptoms does {_NAME} have", "What are the symptoms of {x}?", 0.95),
        (rf"what causes {_NAME}", "What is the cause of {x}?", 0.95),
        (rf"what (?:is|are) the causes? of {_NAME}", "What causes {x}?", 0.95),
        (rf"what are the treatments for {_NAME}", "How is {x} treated?", 0.95),
        (rf"how is {_NAME} treated", "What are the treatments for {x}?", 0.92),
        (rf"how to diagnose {_NAME}", "How is {x} diagnosed?", 0.95),
        (rf"how is {_NAME} diagnosed", "What is the way to diagnose {x}?", 0.9),
        (rf"how to prevent {_NAME}", "How can {x} be prevented?", 0.95),
        (rf"how can {_NAME} be prevented", "How to prevent {x}?", 0.93),
        (rf"what is the outlook for {_NAME}", "What is the prognosis for {x}?", 0.95),
        (rf"what are the complications of {_NAME}", "Which complications can {x} have?", 0.93),
        (
            rf"what are the side effects or risks of {_NAME}",
            "What are the risks or side effects of {x}?",
            0.95,
        ),
        (rf"who is at risk for {_NAME}\s*", "Which people are at risk for {x}?", 0.94),
        (rf"how many people are affected by {_NAME}", "How many people does {x} affect?", 0.95),
        (rf"is {_NAME} inherited", "Can {x} be inherited?", 0.9),
        (rf"what is \(are\) {_NAME}", "What is {x}?", 0.93),
        (
            r"what is (?P<x>(?!(?:the|your|my|a|an|it|this|that|there)\b)[\w-]+(?: [\w-]+)?)",
            "What does {x} mean?",
            0.8,
        ),
        (rf"do you have information about {_NAME}", "Can you tell me about {x}?", 0.93),
        (r"how do i (?P<x>[^?]+?)", "How can I {x}?", 0.95),
        (r"how can i (?P<x>[^?]+?)", "How do I {x}?", 0.94),
        (r"how to (?P<x>(?!be\b)[^?]+?)", "How do I {x}?", 0.93),
        (r"(?:what is|what's) the best way to (?P<x>[^?]+?)", "How can I best {x}?", 0.92),
        (r"is it possible to (?P<x>[^?]+?)", "Can one {x}?", 0.88),
        (r"can i (?P<x>[^?]+?)", "Am I able to {x}?", 0.88),
        (r"could you please (?P<x>[^?]+?)", "Would you please {x}?", 0.93),
        (r"where can i find (?P<x>[^?]+?)", "Where is it possible to find {x}?", 0.9),
        (r"why is my (?P<x>\w+) (?P<y>\w+ing)", "What is the reason that my {x} is {y}?", 0.9),
        (r"is there (?:a|any) way to (?P<x>[^?]+?)", "Is it possible to {x}?", 0.94),
        (r"is it safe to (?P<x>[^?]+?)", "Can one safely {x}?", 0.92),
        (r"how long does it take to (?P<x>[^?]+?)", "How much time does it take to {x}?", 0.95),
        (r"how long does it take for (?P<x>[^?]+?)", "How much time does it take for {x}?", 0.95),
    )
)


def rephrased(text: str) -> Iterator[tuple[str, float]]:
    """Other wordings of a question, each with how sure it is; none of what is no question that is known."""
    for shape, wording, sure in _RULES:
        match = shape.fullmatch(text.strip())
        if match:
            parts = {name: found.strip() for name, found in match.groupdict().items()}
            asked = wording.format_map(parts)
            yield (asked if parts["end"] else asked.rstrip("?")), sure
