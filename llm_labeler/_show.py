"""One sentence with everything that is known of it: prompts, raw answers, parse, drops and votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llm_labeler._ensemble import fit_judges, label
from llm_labeler._evidence import Evidence, judged
from llm_labeler._records import POLARITIES, Answer, Failure, Pair, Text
from llm_labeler._store import Store
from llm_labeler._workplace import STORE_FILE, RunRecord, recall
from pairkit.errors import DataError


@dataclass(frozen=True, slots=True)
class Shown:
    """What `label show` shows.

    Attributes:
        prompts: By polarity: the messages as they were sent, role and words.
        answers: All stored ones of the sentence, of earlier runs, too.
        failures: Questions of it that have no answer.
        evidence: What the present run makes of it; None where it has no answer yet.
        pairs: The candidates with their labels or why they were turned down.
    """

    text: Text
    prompts: dict[str, list[tuple[str, str]]]
    answers: tuple[Answer, ...]
    failures: tuple[Failure, ...]
    evidence: Evidence | None
    pairs: tuple[Pair, ...]


def show(work: Path, wanted: str) -> Shown:
    """Look a sentence up.

    Args:
        work: The working folder.
        wanted: A text_id or its beginning, the sentence itself, or `row:N` of the input.

    Raises:
        ConfigError: not a working folder.
        DataError: no such sentence, or several.
    """
    record, texts = recall(work)
    text = find(texts, wanted, work)
    with Store.open(work / STORE_FILE) as store:
        evidence = next(judged(store, record, {text.text_id: text}), None)
        return Shown(
            text,
            dict(_prompts(record, text)),
            tuple(store.answers([*POLARITIES, "judge"], [text.text_id])),
            tuple(failure for failure in store.failures() if failure.key.text_id == text.text_id),
            evidence,
            () if evidence is None else _pairs(store, record, texts, evidence),
        )


def find(texts: tuple[Text, ...], wanted: str, work: Path) -> Text:
    """The one text that is meant.

    Raises:
        DataError: no such text, or several.
    """
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


def _pairs(store: Store, record: RunRecord, texts: tuple[Text, ...], evidence: Evidence) -> tuple[Pair, ...]:
    settings = record.settings.ensemble
    judges = None
    if settings.strategy == "weighted":  # accuracies come from the votes on all sentences
        everything = judged(store, record, {text.text_id: text for text in texts})
        votes = (vote for one in everything for cast in one.votes.values() for vote in cast)
        judges = fit_judges(votes, settings)
    return tuple(label(evidence.candidates, evidence.votes, settings, judges))
