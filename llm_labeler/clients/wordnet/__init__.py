"""Rules over WordNet, which label without an LLM, a key or weights.

```
text ──tagged_sentence──► TaggedSentence ──► substitutions, reorder, denials ─┐
     ──questions────────► other wordings and other questions ─────────────────┴─annotator──► candidates
```
HanTa tags words, lemminflect inflects them, `lexicon.tsv` is an extract of WordNet, and the `.txt` files are
tables of phrases. The candidates are simple and few: a baseline.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import version

from llm_labeler.clients.llms import Provider
from llm_labeler.clients.wordnet.annotator import candidates
from llm_labeler.clients.wordnet.tagged_sentence import word_set
from llm_labeler.records import Ask, LlmReply, Prices, TokenUsage
from llm_labeler.settings.llms import LlmSettings
from pairkit.similarity.terms import terms

VERSION = 3  # of the rules; answers of other versions are not reused

_FREQUENT = word_set(
    "a an and are can does for from how is it my not of on that the this to what when with you"
)


def language_warning(texts: Sequence[str]) -> str | None:
    """A warning if fewer than half of the texts, of up to some 200, have a frequent English word."""
    sample = texts[:: max(1, len(texts) // 200)]
    english = [text for text in sample if not _FREQUENT.isdisjoint(terms(text))]
    if 2 * len(english) >= len(sample):
        return None
    return (
        "warning: most sentences are not English, and the rules of wordnet know only English; use an LLM, or"
        " train a multilingual backbone on the sentences themselves (`aoe train`)"
    )


class WordnetProvider(Provider):
    """Rules over WordNet (`kind = "wordnet"`); they use the text of a question, not its prompt."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        # Equal versions give equal answers on every machine.
        parameters = {
            "kind": "wordnet",
            "llm": False,
            "rules": VERSION,
            "hanta": version("hanta"),
            "lemminflect": version("lemminflect"),
        }
        super().__init__(
            name, settings, json.dumps(parameters, sort_keys=True), Prices(0.0, 0.0)
        )
        self.model = settings.model or "wordnet rules"

    def max_usage(self, ask: Ask) -> TokenUsage:  # noqa: ARG002 - a Provider
        """Rules use no tokens."""
        return TokenUsage(0, 0)

    async def reply(self, ask: Ask) -> LlmReply:
        """A numbered list of candidates by falling confidence; may be empty."""
        await asyncio.sleep(0)  # let other tasks run
        sentences = candidates(ask.text, ask.key.polarity, ask.size)
        lines = [f"{number}. {line}" for number, line in enumerate(sentences, 1)]
        return LlmReply("\n".join(lines), "stop", TokenUsage(0, 0), self.model)
