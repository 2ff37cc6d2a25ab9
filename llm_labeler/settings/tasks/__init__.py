"""The labelling tasks: what LLMs write for each text; a file declares each of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

TaskName = Literal["paraphrase", "triplet", "query"]


@dataclass(frozen=True, slots=True)
class LabellingTask:
    """What differs between tasks, as declared in the file of each.

    Attributes:
        meaning: What LLMs write, for the help.
        card: Texts of the dataset's card, which replace those of `dataset/card_texts.toml`.
        prompt: System message and question by polarity; empty: the templates of the default task.
        makes_triplets: Whether the dataset has only triplets, not pairs with a label.
        has_hard_negatives: Whether negatives change one thing of the text, and each names the kind.
        asks_questions: Whether the sentences are questions about a passage.
        can_be_judged: Whether positives mean the same as their text, which judges can check.
    """

    meaning: str
    card: Mapping[str, str]
    prompt: Mapping[str, str] = field(default_factory=dict)
    makes_triplets: bool = True
    has_hard_negatives: bool = False
    asks_questions: bool = False
    can_be_judged: bool = True


_FOLDER = Path(__file__).parent
TASKS: Mapping[str, LabellingTask] = {
    name: LabellingTask(**tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8")))
    for name in get_args(TaskName)
}
DEFAULT_TASK: TaskName = "paraphrase"
