"""An annotator that is no LLM: rules over WordNet, so that labelling runs with no key and no weights.

```
text ──sentence──► Sentence ──► paraphrases, synonyms, reorder, questions ──► Change ──annotator──► candidates
                               denials, assertions, contrasts, antonyms  ──►
```
Hard negatives are in `hard_negatives`, questions to a passage in `queries`. HanTa tags words, lemminflect
inflects them, `lexicon.tsv` is an extract of WordNet; the `.txt` files are tables of phrases.
The candidates are plain and few: a baseline without an LLM, and no member of `ensemble` unless asked for.
"""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version

from llm_labeler.clients.wordnet.annotator import candidates
from llm_labeler.clients.wordnet.hard_negatives import hard_negatives, same_meaning
from llm_labeler.clients.wordnet.queries import queries
from llm_labeler.records import Ask, LlmReply, Polarity, Prices, TokenUsage, content_hash
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError

VERSION = 3  # of the rules; another one's answers are asked for anew


class WordnetProvider:
    """Rules over WordNet (`kind = "wordnet"`). No LLM: it reads the text of an ask, not its prompt."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        self.name = name
        self.model = settings.model or "wordnet rules"
        # The same everywhere: whoever has these versions gets these answers.
        versions = {"rules": VERSION, **{library: version(library) for library in ("hanta", "lemminflect")}}
        self.parameters_text = json.dumps({"kind": "wordnet", "llm": False, **versions}, sort_keys=True)
        self.parameters = content_hash(self.parameters_text)
        self.prices = Prices(0.0, 0.0)
        self.concurrency = settings.concurrency
        self.rpm = settings.rpm
        self.tpm = settings.tpm
        self.attempts = 1
        self.key_variable: str | None = None
        self.leaves_machine = False

    def bound(self, ask: Ask) -> TokenUsage:  # noqa: ARG002 - a Provider
        """Nothing: rules use no tokens."""
        return TokenUsage(0, 0)

    async def check(self) -> None:
        """Nothing can be missing."""

    async def reply(self, ask: Ask) -> LlmReply:
        """A numbered list of candidates, the surest first; empty where the rules find nothing safe."""
        if ask.key.task == "judge":
            raise ConfigError(
                f"llm.{self.name}: rules over WordNet can't judge candidates; name LLMs in judge.llms, "
                "or use aggregation union"
            )
        await asyncio.sleep(0)  # others get their turn: this one never waits for anything
        raw = "\n".join(f"{number}. {line}" for number, line in enumerate(_lines(ask, ask.key.task), 1))
        return LlmReply(raw, "stop", TokenUsage(0, 0), self.model)

    async def close(self) -> None:
        """Nothing is held open."""


def _lines(ask: Ask, polarity: Polarity) -> list[str]:
    """The sentences that the rules find, hard negatives with their kinds before them."""
    if ask.labelling == "query":
        return queries(ask.text, polarity, ask.size)
    if ask.labelling != "triplet":
        return candidates(ask.text, polarity, ask.size)
    if polarity == "positive":
        return same_meaning(ask.text, ask.size)
    return [f"{kind}: {found}" for kind, found in hard_negatives(ask.text, ask.size, ask.changes)]
