"""What people should know before they use what an LLM wrote: most of it is beside the point, or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llm_labeler._filters import BESIDE
from llm_labeler._records import Proposal

_FEWEST = 3  # fewer tell nothing


class Doubts:
    """Counts of proposals and answers by LLM, text by text, and the warnings that follow."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._beside: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    def add(self, proposals: Iterable[Proposal], answers: Counter[str]) -> None:
        """Take in one text's proposals, and how many answers they come from, by LLM."""
        self._answers.update(answers)
        for proposal in proposals:
            self._kept[proposal.llm] += proposal.reason is None
            self._beside[proposal.llm] += proposal.reason in BESIDE
            self._spent[proposal.llm] += proposal.reason == "limit_spent"

    def warnings(self) -> tuple[str, ...]:
        """One line for each doubt, by LLM."""
        return tuple(line for llm in sorted(self._answers) for line in self._about(llm))

    def _about(self, llm: str) -> list[str]:
        found: list[str] = []
        beside, judged = self._beside[llm], self._beside[llm] + self._kept[llm]
        if beside >= _FEWEST and 2 * beside > judged:
            found.append(
                f"{llm}: {beside:,} of {judged:,} sentences have little to do with their texts"
                f" ({', '.join(BESIDE)}); it may answer them instead of rewriting them: look at some with"
                " `label show`, and try prompt hardened (--prompt hardened)"
            )
        spent, answers = self._spent[llm], self._answers[llm]
        if spent >= _FEWEST and 2 * spent > answers:
            found.append(
                f"{llm}: {spent:,} of {answers:,} answers spent their token limit before they began, as a"
                f" rule on reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )
        return found
