"""From advisers and rows to the vectors of every row's texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._advice import AdviceStore, AdviserVectors, ColumnVectors
from aoe_train._advisers.given import given_vectors
from aoe_train._advisers.scores import given_scores
from aoe_train._encode.listed import TextVectors
from aoe_train._objectives.kinds import check_advisers
from aoe_train._objectives.parts import Advisers
from aoe_train._records import ABSENT
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._advisers.adviser import Adviser
    from aoe_train._encoder import Encoder
    from aoe_train._objectives.settings import ObjectiveSettings
    from aoe_train._records import Examples
    from aoe_train._settings import TeacherSettings
    from pairkit.progress import Listener


def check(
    advisers: Sequence[Adviser],
    objective: ObjectiveSettings,
    encoder: Encoder,
    examples: Examples,
    teacher: TeacherSettings,
    *,
    own: bool = False,
) -> None:
    """Refuse what can't work before the advisers have encoded anything, which may take hours.

    Args:
        advisers: Those of the run.
        objective: What is learnt.
        encoder: What is trained.
        examples: The rows.
        teacher: May bring scores.
        own: A loss of one's own takes the objective's place.

    Raises:
        ConfigError: Says what does not go together, and what to do instead.
    """
    if own:
        if advisers or teacher.scores:
            role = advisers[0].role if advisers else "teacher"
            raise ConfigError(
                f"a loss of one's own hears of no {role}; leave one of the two out, or let your"
                " loss hold the other model's vectors"
            )
        return
    dims = {adviser.role: adviser.dim or encoder.dim for adviser in advisers}
    scores = teacher.scores is not None
    known = Advisers(guide="guide" in dims, teacher_dim=dims.get("teacher"), scores=scores)
    check_advisers(objective, dim=encoder.dim, kind=examples.kind, advisers=known)
    for adviser in advisers:
        adviser.check(objective, encoder.settings)
        adviser.prompts(examples)


def consult(
    advisers: Iterable[Adviser],
    datasets: Mapping[str, Examples],
    teacher: TeacherSettings,
    cache: Path,
    show: Listener,
) -> dict[str, AdviceStore]:
    """Make the advisers' vectors of all texts, or find them, and read the scores that a person brings.

    Args:
        advisers: Each is asked of all datasets; then its model is let go of.
        datasets: By name, the rows before they have prompts of ours.
        teacher: May bring scores.
        cache: Where vectors are kept; a run that was stopped goes on with them.
        show: Told how many texts are encoded.

    Raises:
        ConfigError: A prompt for a column that isn't there, or vectors that can't be written.
        DataError: A text that gives no vector, or for which a file has none.
    """
    return _asked(
        advisers, datasets, teacher, lambda adviser, examples: _vectors(adviser, examples, cache, show)
    )


def imagine(
    advisers: Iterable[Adviser],
    datasets: Mapping[str, Examples],
    teacher: TeacherSettings,
    cache: Path,
    show: Listener,
) -> dict[str, AdviceStore]:
    """What `consult` gives in size, with zeros for what a model would have to encode."""

    def vectors(adviser: Adviser, examples: Examples) -> AdviserVectors:
        if adviser.dim is None:
            return _vectors(adviser, examples, cache, show)
        zeros = np.zeros((1, adviser.dim), np.float32)
        column = ColumnVectors(zeros, np.zeros(len(examples), np.int64))
        return AdviserVectors([column] * max(2, examples.rows.shape[1]))

    return _asked(advisers, datasets, teacher, vectors)


def _asked(
    advisers: Iterable[Adviser],
    datasets: Mapping[str, Examples],
    teacher: TeacherSettings,
    vectors: Callable[[Adviser, Examples], AdviserVectors],
) -> dict[str, AdviceStore]:
    found: dict[str, dict[str, AdviserVectors]] = {name: {} for name in datasets}
    for adviser in advisers:
        for name, examples in datasets.items():
            found[name][adviser.role] = vectors(adviser, examples)
        adviser.release()
    return {name: AdviceStore(found[name], _scores(teacher, examples)) for name, examples in datasets.items()}


def _scores(teacher: TeacherSettings, examples: Examples) -> np.ndarray | None:
    if teacher.scores is None:
        return None
    return given_scores(Path(teacher.scores), examples, teacher.score_range)


def _vectors(adviser: Adviser, examples: Examples, cache: Path, show: Listener) -> AdviserVectors:
    columns: dict[int, ColumnVectors] = {}
    prompts = adviser.prompts(examples)
    for prompt in dict.fromkeys(prompts):
        own = [column for column, words in enumerate(prompts) if words == prompt]
        rows = examples.rows[:, own]
        numbers, flat = np.unique(np.where(rows == ABSENT, rows[:1, :1], rows), return_inverse=True)
        texts = [examples.texts[number] for number in numbers.tolist()]
        if adviser.file is not None:
            found = given_vectors(adviser.file, texts)
        else:
            made = TextVectors(texts, adviser.identity, prompt, folder=cache)
            found = made.load_or_make(lambda: adviser.encoder, show)
        places = flat.reshape(rows.shape)
        columns |= {column: ColumnVectors(found, places[:, at]) for at, column in enumerate(own)}
    found_columns = [columns[column] for column in range(len(prompts))]
    views = 2 if examples.kind == "single" else 1  # as the text is its own positive
    return AdviserVectors(found_columns * views)
