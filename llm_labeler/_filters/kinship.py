"""Whether a sentence can speak of the same as its text: by the words that they share, and by their kinds.

An LLM that answers a question instead of rewriting it writes sentences that look fine by themselves. What
gives them away is that they share next to nothing with the text, or that they don't ask.
"""

from __future__ import annotations

import re

from llm_labeler._filters.words import fold, stem, words
from llm_labeler._scripts import UNSPACED

# Words that say nothing of what a sentence is about; of scripts without spaces, characters.
_ENGLISH = (
    "a about after all also am an and any are as at be been being both but by can could did do "
    "does doing done for from get gets getting give given go goes going got had has have having "
    "he her here hers him his how i if in into is it its just let like make makes me more most "
    "much my no nor not of off on one only or other our out over own so some such than that the "
    "their them then there these they this those through to too under up us very was we well were "
    "what when where which while who whom whose why will with would you your yours there's im ive "
    "dont answer"
)
_COMMON = frozenset(_ENGLISH.split()) | frozenset(
    "的了是在我你他她它们这那有不个一也很都就和与吗呢吧啊把被将会能要可以はがをにのでとも"
)
_ASKING = re.compile(
    r"[\W_]*(?:(?:and|but|so|or|also|please|in|on|at|for|from|to|with|of|by|about|under|since"
    r"|until) )*(?:what|whats|when|where|which|who|whose|whom|why|how|is|are|am|was|were|do|does|did|can"
    r"|could|will|would|should|shall|may|might|must|has|have|had|isn['’]?t|aren['’]?t|don['’]?t|doesn['’]?t"
    r"|didn['’]?t|can['’]?t|couldn['’]?t|won['’]?t|wouldn['’]?t|shouldn['’]?t)\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟՞]|[吗呢](?:\W|$)|(?:か|の)[。.]?$")
# A wish for the same answer: `Tell me how …`, `I wonder whether …`.
_WISH = re.compile(
    r"\b(?:tell|explain|describe|suggest|advise|advice|recommend|give|show|name|list|help|need|know|wonder"
    r"|wondering|curious|ask|asking|let me|looking for|question|please|inquire|information|clarify|like to"
    r"|want to|interested)\b|请|想知道|告诉|教えて|ください",
    re.IGNORECASE,
)


def shared(candidate: str, text: str) -> float:
    """How much of the shorter sentence's content stands in the other, in [0, 1]: the larger of two shares.

    Of content words, their endings aside, and of runs of three letters, which also find parts of words, other
    spellings and names. A sentence without content words has all of its own in common with any.
    """
    one, other = _content(candidate), _content(text)
    return max(_share(one, other), _share(_runs(candidate), _runs(text))) if one and other else 1.0


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: by its sign, or by the word that it begins with."""
    return _ASKED.search(sentence) is not None or _ASKING.match(sentence) is not None


def asks(sentence: str) -> bool:
    """Whether a sentence asks, or wishes to be told."""
    return is_question(sentence) or _WISH.search(sentence) is not None


def _content(sentence: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(sentence) if word not in _COMMON)


def _runs(sentence: str) -> frozenset[str]:
    """Runs of three letters; none of what is written without spaces, whose words are single characters."""
    folded = fold(sentence)
    is_unspaced = not folded.isascii() and UNSPACED.search(folded) is not None
    return frozenset() if is_unspaced else frozenset(folded[n : n + 3] for n in range(len(folded) - 2))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0
