"""What LLMs are asked about each text, and what is read out of the answers: a class for each task.

Whatever the task, what comes of it are candidates: sentences that belong to a text as a `positive` or a
`negative`. Judges, ensembles, splits and the dataset go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from llm_labeler._filters import Screened
from llm_labeler._kinds import TASKS, load
from llm_labeler._records import Answer, Ask, AskKey, Text
from llm_labeler._workplace import RunRecord

__all__ = ["LabellingTask", "task_of"]


class LabellingTask(Protocol):
    """One labelling task; a new one is a file here and a line in `_kinds.TASKS`."""

    record: RunRecord

    def __init__(self, record: RunRecord) -> None: ...

    def questions_a_text(self, llm: str) -> int:
        """How many questions one LLM is asked about a text."""
        ...

    def asks(self, texts: Sequence[Text], llm: str) -> Iterator[Ask]:
        """One LLM's questions, text by text."""
        ...

    def is_of_run(self, key: AskKey) -> bool:
        """Whether the run is made from the answer to a question, which may be of an earlier prompt."""
        ...

    def screen(self, text: Text, answers: Sequence[Answer]) -> Screened:
        """What the answers to one text's questions propose, and which of that are candidates."""
        ...


def task_of(record: RunRecord) -> LabellingTask:
    """The task that a run's settings name."""
    task: LabellingTask = load("_tasks", TASKS[record.settings.task].place)(record)
    return task
