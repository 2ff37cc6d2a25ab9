"""What the stored answers say about each text: proposals, candidates, judgements. Asks nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from llm_labeler._filters import screen
from llm_labeler._judge import judge_asks, judge_batches, read_verdicts
from llm_labeler._parse import parse_answer
from llm_labeler._records import POLARITIES, Answer, Ask, Candidate, Item, Judgement, Proposal, Text
from llm_labeler._store import Store
from llm_labeler._workplace import RunRecord, kind_of


@dataclass(slots=True)
class Evidence:
    """One text with all that was proposed for it.

    Attributes:
        votes: Judgements by candidate_id.
        answers: How many answers it rests on, by LLM.
        unjudged: Questions to judges that have no answer yet.
    """

    text: Text
    proposals: tuple[Proposal, ...]
    candidates: tuple[Candidate, ...]
    answers: Counter[str]
    votes: dict[str, list[Judgement]] = field(default_factory=dict)
    unjudged: int = 0


def proposed(store: Store, record: RunRecord, texts: Mapping[str, Text]) -> Iterator[Evidence]:
    """Each text that has an answer, in order of text_id, without judgements.

    Answers of earlier runs in the same folder (another size, prompt, model) take no part.

    Args:
        store: The answers.
        record: The run.
        texts: text_id to text, of the run's input.
    """
    wanted = record.generation_keys()
    for text_id, group in groupby(store.answers(POLARITIES), key=lambda answer: answer.key.text_id):
        text = texts.get(text_id)
        answers = [answer for answer in group if kind_of(answer.key) in wanted]
        if text is None or not answers:
            continue
        items = [(answer.key, _items(answer, text, record)) for answer in answers]
        screened = screen(text, items, record.settings.filters)
        yield Evidence(text, screened.proposals, screened.candidates, Counter(a.key.llm for a in answers))


def _items(answer: Answer, text: Text, record: RunRecord) -> list[Item]:
    """What one answer holds; where it has both polarities, of the one that was asked for."""
    task, reply = answer.key.task, answer.reply
    polarity = None if task == "judge" else task
    size = record.settings.size
    return parse_answer(reply.raw, text=text.text, finish=reply.finish, size=size, polarity=polarity)


def judged(store: Store, record: RunRecord, texts: Mapping[str, Text]) -> Iterator[Evidence]:
    """As `proposed`, with what the judges said of each candidate."""
    for evidence in proposed(store, record, texts):
        for judge in record.settings.judges:
            batches = judge_batches(evidence.candidates, judge, record.settings.judge, record.settings.seed)
            for ask, batch in zip(questions_to(judge, evidence, record), batches, strict=True):
                answer = store.answer(ask.key)
                if answer is None:
                    evidence.unjudged += 1
                    continue
                for vote in read_verdicts(ask, batch, answer.reply.raw, answer.reply.finish):
                    evidence.votes.setdefault(vote.candidate_id, []).append(vote)
        yield evidence


def questions_to(judge: str, evidence: Evidence, record: RunRecord) -> list[Ask]:
    """What one judge is asked about one text's candidates."""
    settings = record.settings
    parameters = record.parameters[judge][0]
    return judge_asks(evidence.text, evidence.candidates, judge, parameters, settings.judge, settings.seed)


def judge_questions(evidence: Iterable[Evidence], judge: str, record: RunRecord) -> Iterator[Ask]:
    """What one judge is asked, text by text."""
    for one in evidence:
        yield from questions_to(judge, one, record)
