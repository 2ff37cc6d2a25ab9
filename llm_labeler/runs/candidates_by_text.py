"""What is stored about each text, brought together: proposals, candidates, judgements. Asks nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from llm_labeler.judging import CANDIDATES, Scale, judge_asks, judge_batches, read_votes
from llm_labeler.judging.ensemble import Judges, fit_judges
from llm_labeler.records import POLARITIES, Ask, Candidate, Judgement, Proposal, Reply, Text
from llm_labeler.runs.tasks import task_of
from llm_labeler.store import Store
from llm_labeler.store.workplace import RunRecord


@dataclass(slots=True)
class Gathered:
    """One text with all that was proposed for it."""

    text: Text
    proposals: tuple[Proposal, ...]
    candidates: tuple[Candidate, ...]
    answers: Counter[str]
    votes: dict[str, list[Judgement]] = field(default_factory=dict)
    unjudged: int = 0


def proposed(store: Store, record: RunRecord, texts: Mapping[str, Text]) -> Iterator[Gathered]:
    """Each text that has an answer, in order of text_id, without judgements.

    Answers of earlier runs in the same folder (another size, prompt, model) take no part.
    """
    task = task_of(record)
    stored = store.answers(POLARITIES, texts)
    for text_id, group in groupby(stored, key=lambda answer: answer.key.text_id):
        answers = [answer for answer in group if task.is_of_run(answer.key)]
        if not answers:
            continue
        text = texts[text_id]
        screened = task.screen(text, answers)
        yield Gathered(text, screened.proposals, screened.candidates, Counter(a.key.llm for a in answers))


def judged(store: Store, record: RunRecord, texts: Mapping[str, Text]) -> Iterator[Gathered]:
    """As `proposed`, with what the judges said of each candidate."""
    for about in proposed(store, record, texts):
        hear(about, record.settings.judges, store, record)
        yield about


def hear(
    about: Gathered, judges: Iterable[str], store: Store, record: RunRecord, scale: Scale = CANDIDATES
) -> None:
    """Take in what judges said of a text's candidates, and how much they have not answered."""
    for ask, batch, reply in heard(about, judges, store, record, scale):
        for vote in read_votes(ask, batch, reply.raw, reply.finish, scale):
            about.votes.setdefault(vote.candidate_id, []).append(vote)


def heard(
    about: Gathered, judges: Iterable[str], store: Store, record: RunRecord, scale: Scale
) -> Iterator[tuple[Ask, tuple[Candidate, ...], Reply]]:
    """Each question about a text that a judge answered, what it was about, and the answer."""
    for judge in judges:
        batches = judge_batches(about.candidates, judge, record.settings.judge, record.settings.seed)
        for ask, batch in zip(questions_to(judge, about, record, scale), batches, strict=True):
            if (answer := store.answer(ask.key)) is None:
                about.unjudged += 1
            else:
                yield ask, batch, answer.reply


def judges_of(store: Store, record: RunRecord, texts: Mapping[str, Text]) -> Judges | None:
    """What all votes tell of the judges; None where nobody judges."""
    if not record.settings.judges:
        return None
    everything = judged(store, record, texts)
    votes = (vote for about in everything for cast in about.votes.values() for vote in cast)
    return fit_judges(votes, record.settings.ensemble)


def questions_to(judge: str, about: Gathered, record: RunRecord, scale: Scale = CANDIDATES) -> list[Ask]:
    """What one judge is asked about one text's candidates."""
    settings = record.settings
    parameters = record.parameters[judge][0]
    return judge_asks(about.text, about.candidates, judge, parameters, settings.judge, settings.seed, scale)


def judge_questions(
    gathered: Iterable[Gathered], judge: str, record: RunRecord, scale: Scale = CANDIDATES
) -> Iterator[Ask]:
    """What one judge is asked, text by text."""
    for about in gathered:
        yield from questions_to(judge, about, record, scale)
