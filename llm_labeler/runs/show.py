"""One sentence with everything that is known of it: prompts, raw answers, parse, drops and votes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from llm_labeler.judging.ensemble import label
from llm_labeler.records import POLARITIES, Failure, LabelledPair, StoredAnswer, Text
from llm_labeler.runs.tasks import TextCandidates, estimate_judges, screen_texts, with_votes
from llm_labeler.settings.kinds import OWN
from llm_labeler.store import AnswerStore
from llm_labeler.store.run_folder import STORE_FILE, RunRecord, load_run
from pairkit.app.errors import DataError


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """One sentence with all that is known of it.

    Attributes:
        prompts: By polarity: the messages as they were sent, role and words.
        answers: All stored ones of the sentence, of earlier runs, too.
        failures: Questions of it that have no answer.
        gathered: What the present run makes of it; None where it has no answer yet.
        pairs: The candidates with their labels or why they were turned down; none where a function given from
            Python decides that.
    """

    text: Text
    prompts: dict[str, list[tuple[str, str]]]
    answers: tuple[StoredAnswer, ...]
    failures: tuple[Failure, ...]
    gathered: TextCandidates | None
    pairs: tuple[LabelledPair, ...]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Titles and what stands below each."""
        for polarity, messages in self.prompts.items():
            yield f"prompt, {polarity}", [f"{role}: {words}" for role, words in messages]
        for answer in self.answers:
            key, reply = answer.key, answer.reply
            title = f"answer of {key.llm}, {key.task} ({reply.finish}; prompt {key.prompt_hash})"
            yield title, [reply.raw or "(empty)"]
        for failure in self.failures:
            line = f"{failure.reason} after {failure.attempts} calls: {failure.detail}"
            yield f"no answer of {failure.key.llm}, {failure.key.task}", [line]
        if self.gathered is not None:
            yield (
                "proposals",
                [
                    f"{p.llm} {p.polarity} [{p.reason or p.change or 'kept'}] {p.candidate}"
                    for p in self.gathered.proposals
                ],
            )
        if self.pairs:
            yield "pairs", [_line(pair) for pair in self.pairs]

    def tables(self) -> list[str]:
        """For the terminal, which must not take it for markup."""
        return [repr(self)]

    def __repr__(self) -> str:
        parts = (f"\n{title}\n{chr(10).join(lines)}" for title, lines in self.parts())
        return "\n".join((f"{self.text.text_id}  row {self.text.row}", self.text.text, *parts))


def _line(pair: LabelledPair) -> str:
    votes = ", ".join(f"{vote.judge}: {vote.vote}" for vote in pair.votes)
    mark = pair.reason or f"{pair.polarity}, label {pair.label:g}"
    return f"[{mark}] {pair.candidate.candidate}{f'  ({votes})' if votes else ''}"


def show(work: Path, wanted: str) -> Shown:
    """Look a sentence up."""
    record, texts = load_run(work)
    text = find(texts, wanted, work)
    with AnswerStore.open(work / STORE_FILE) as store:
        one = screen_texts(store, record, {text.text_id: text})
        about = next(with_votes(one, store, record), None)
        return Shown(
            text,
            dict(_prompts(record, text)),
            tuple(store.answers([*POLARITIES, "judge"], [text.text_id])),
            tuple(failure for failure in store.failures() if failure.key.text_id == text.text_id),
            about,
            _pairs(store, record, {text.text_id: text for text in texts}, about),
        )


def find(texts: tuple[Text, ...], wanted: str, work: Path) -> Text:
    """The one text that is meant."""
    found = [text for text in texts if wanted in (text.text_id, text.text, f"row:{text.row}")]
    found = found or [text for text in texts if wanted and text.text_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{len(found)} sentences begin with the id {wanted!r}; give more of it", path=work)
    raise DataError(
        f"no sentence {wanted!r} among {len(texts):,}; give a text_id (a column of the dataset), row:N or "
        "the sentence itself",
        path=work,
    )


def _prompts(record: RunRecord, text: Text) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for polarity in record.settings.prompt.polarities:
        messages = record.template.messages(text.text, record.settings.size, polarity)
        yield polarity, [(message.role, message.content) for message in messages]


def _pairs(
    store: AnswerStore, record: RunRecord, texts: Mapping[str, Text], about: TextCandidates | None
) -> tuple[LabelledPair, ...]:
    settings = record.settings.ensemble
    if about is None or settings.strategy.startswith(OWN):
        return ()
    judges = estimate_judges(screen_texts(store, record, texts), store, record)
    return tuple(label(about.candidates, about.votes, settings, judges))
