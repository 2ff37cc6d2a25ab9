"""Notes on a run, and warnings about the quality of its pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from llm_labeler.dataset.texts import InputTexts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.parsing.filters import COPIES, OFF_TOPIC, shared
from llm_labeler.records import Proposal
from llm_labeler.runs.label_folder import RunRecord
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import FUNCTION
from pairkit.base.cli.progress import Listener
from pairkit.base.cli.terminal import say
from pairkit.base.errors import spoken

_MIN_COUNT = 3  # fewer cases give no warning
_MIN_SHARED = 0.2  # share of common content words; 3 % of true paraphrases have less


class Notes(list[str]):
    """The notes of a run; they are also printed if progress is shown."""

    def __init__(self, progress: bool | Listener) -> None:
        self._is_quiet = progress is not True

    def add(self, note: str) -> None:
        """Keep a note, and print it."""
        self.append(spoken(note))
        say(note, quiet=self._is_quiet)

    def add_input(self, texts: InputTexts, remote: Sequence[str]) -> None:
        """Note which rows are not used, and which LLMs may send texts to another machine."""
        for reason, count in texts.dropped.items():
            self.add(
                f"{texts.examples[reason]}: not used, {reason} ({count:,} such rows; see the [input]"
                " settings)"
            )
        if remote:
            self.add(f"the sentences may leave this machine: {', '.join(remote)}")

    def add_rejected(self, store: AnswerStore, record: RunRecord) -> None:
        """Note how many rejected questions were not repeated."""
        rejected = sum(f.final and record.asks(f.key) for f in store.failures())
        if rejected:
            self.add(
                f"{rejected:,} questions were rejected by their server and not repeated;"
                " --retry-failed repeats them"
            )


class QualityWarnings:
    """Counts proposals and answers by LLM, and derives warnings from the counts."""

    def __init__(self, settings: LabelSettings) -> None:
        self._settings = settings
        self._counts: dict[str, Counter[str]] = {}  # by LLM

    def add(
        self, text: str, proposals: Iterable[Proposal], answers: Counter[str]
    ) -> None:
        """Count one text's proposals, and the number of answers by LLM."""
        for llm, number in answers.items():
            self._counts.setdefault(llm, Counter())["answers"] += number
        for proposal in proposals:
            counts = self._counts.setdefault(proposal.llm, Counter())
            is_kept = proposal.reason is None
            is_positive = is_kept and proposal.polarity == "positive"
            is_unlike = is_positive and shared(proposal.candidate, text) < _MIN_SHARED
            counts["positives"] += is_positive
            counts["on_topic"] += is_kept and not is_unlike
            counts["off_topic"] += is_unlike or proposal.reason in OFF_TOPIC
            counts["limit_spent"] += proposal.reason == "limit_spent"
            counts["empty"] += proposal.reason == "empty_answer"
            is_copy = proposal.reason in COPIES
            if proposal.polarity == "negative" and (is_kept or is_copy):
                counts["negatives"] += 1
                counts["copies"] += is_copy

    def warnings(self) -> tuple[str, ...]:
        """The warnings, one line each, sorted by LLM."""
        lines = []
        for llm, counts in sorted(self._counts.items()):
            if self._settings.llm[llm].is_rules:
                warnings = self._of_rules(counts)
            else:
                warnings = self._of_llm(llm, counts)
            lines += [f"{llm}: {warning}" for warning in warnings]
        return tuple(lines)

    def _of_rules(self, counts: Counter[str]) -> Iterator[str]:
        if "positive" in self._settings.prompt.polarities and not counts["positives"]:
            yield "no positives; its rules fit few sentences, all English: use an LLM"

    def _of_llm(self, llm: str, counts: Counter[str]) -> Iterator[str]:
        off_topic = counts["off_topic"]
        judged = off_topic + counts["on_topic"]
        if off_topic >= _MIN_COUNT and 2 * off_topic > judged:
            yield (
                f"{off_topic:,} of {judged:,} sentences have little to do with their texts (dropped as"
                f" {', '.join(OFF_TOPIC)}, or kept with almost no word in common); it may answer them instead"
                " of rewriting them: look at some with `label show`, and try --prompt=hardened"
            )
        copies = counts["copies"]
        negatives = counts["negatives"]
        if copies >= _MIN_COUNT and 2 * copies > negatives:
            yield (
                f"{copies:,} of {negatives:,} negatives repeat their texts"
                f" ({', '.join(COPIES)}); it may be too small for the task: look at some with `label show`,"
                " and use a larger model, or let other LLMs judge with --aggregation=vote"
            )
        answers = counts["answers"]
        empty = counts["empty"]
        if empty >= _MIN_COUNT and 2 * empty >= answers:
            remedy = "another model"
            if self._settings.llm[llm].kind != FUNCTION:
                remedy = f"llm.{llm}.structured=off, or another model"
            yield (
                f"{empty:,} of {answers:,} answers have no sentence; look at some with `label show`,"
                f" and try {remedy}"
            )
        spent = counts["limit_spent"]
        if spent >= _MIN_COUNT and 2 * spent > answers:
            yield (
                f"{spent:,} of {answers:,} answers reached the token limit before they began, usually"
                f" by reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )
