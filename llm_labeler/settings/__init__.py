"""The settings of a labelling run, with its tasks and aggregations; a file of `tasks` declares each task."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from llm_labeler.records import (
    CHANGES,
    POLARITIES,
    ChangeKind,
    Polarity,
)
from llm_labeler.settings.llms import LlmSettings, how_to_add, listed, with_built_in
from pairkit.base.settings import PathText, Settings, between_commas, setting

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


_FOLDER = Path(__file__).with_name("tasks")
TASKS: Mapping[str, LabellingTask] = {
    name: LabellingTask(**tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8")))
    for name in get_args(TaskName)
}
DEFAULT_TASK: TaskName = "paraphrase"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A way to turn proposals and votes into labels."""

    meaning: str
    is_judged: bool = False
    is_graded: bool = False


AggregationName = Literal["union", "vote", "weighted"]

AGGREGATIONS: Mapping[str, Aggregation] = {
    "union": Aggregation("every proposal that passed the filters"),
    "vote": Aggregation(
        "proposals whose polarity has more votes than any other verdict; judges see neither the polarity nor"
        " their own proposals, but LLMs that wrote the same sentence each have a vote for it",
        is_judged=True,
    ),
    "weighted": Aggregation(
        "proposals that judges confirmed, with votes weighted by the judges' estimated accuracy; the label is"
        " the resulting probability. Judges see neither the polarity nor their own proposals, but LLMs that"
        " wrote the same sentence each have a vote for it",
        is_judged=True,
        is_graded=True,
    ),
}


def _names(value: object) -> object:
    """Split `NAME,NAME`."""
    if not isinstance(value, str):
        return value
    names = between_commas(value)
    if not all(names):
        raise ValueError("expected NAME or NAME,NAME, such as chatgpt,llama")
    return names


def _polarities(value: object) -> object:
    """Accept `both`, or names with commas."""
    if value == "both":
        return POLARITIES
    if isinstance(value, str) and not {*between_commas(value)} <= {*POLARITIES}:
        raise ValueError("expected positive, negative or both")
    return _names(value)


_MEANINGS = [f"{name} ({task.meaning})" for name, task in TASKS.items()]
_OWN_PROMPT = [name for name, task in TASKS.items() if task.prompt]
_TRIPLET_TASKS = [name for name, task in TASKS.items() if task.makes_triplets]

Changes = Annotated[tuple[ChangeKind, ...], BeforeValidator(_names)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Polarities = Annotated[tuple[Polarity, ...], BeforeValidator(_polarities)]


class PromptSettings(Settings):
    """The prompts sent to the LLMs."""

    template: PathText = setting(
        "hardened",
        f"Prompt of the task {DEFAULT_TASK}: hardened, paper, or a file with {{text}}, {{size}} and"
        f" {{polarity}}. The tasks {listed(_OWN_PROMPT, 'and')} have their own prompt, which a file replaces.",
    )
    polarities: Polarities = setting(
        POLARITIES,
        "Which sentences to request: positive (same meaning), negative (opposite meaning) or both.",
        min_length=1,
    )
    examples: Path | None = setting(
        None, "File of pairs or triplets to send as few-shot examples."
    )
    changes: Changes = setting(
        CHANGES, "What hard negatives of the task triplet may change.", min_length=1
    )


class InputSettings(Settings):
    """Selection of the sentences."""

    min_chars: int = setting(
        1, "Minimum number of characters; shorter sentences are dropped.", ge=1
    )
    max_chars: int = setting(
        2000, "Maximum number of characters; longer sentences are dropped.", ge=1
    )
    limit: int | None = setting(None, "Use only the first N usable texts.", ge=1)
    draw: int | None = setting(
        None,
        "Use a random sample of N texts, for example of a file that is sorted by topic.",
        ge=1,
    )


class FilterSettings(Settings):
    """Which proposals are kept."""

    min_length_ratio: float = setting(
        0.25,
        "Minimum length of a candidate, as a share of the length of its sentence.",
        ge=0,
    )
    max_length_ratio: float = setting(
        4.0, "Maximum ratio of a candidate's length to its sentence's.", gt=0
    )
    same_script: bool = setting(
        True, "Drop candidates in another main script than their sentence."
    )
    min_shared: float = setting(
        0.0,
        "Minimum share of content words in common; 0.2 also drops some good paraphrases.",
        ge=0,
        le=1,
    )
    same_kind: bool = setting(
        True, "Drop positives of a question that are not questions."
    )
    min_differing_words: int = setting(
        0, "Minimum number of words by which a negative differs.", ge=0
    )
    min_kept: float = setting(
        0.5,
        "Minimum share of content words that a hard negative keeps (task triplet).",
        ge=0,
        le=1,
    )
    antonym_similarity: float = setting(
        0.95,
        "Word-order similarity from which a reordered negative counts as a copy.",
        gt=0,
        le=1,
    )


class JudgeSettings(Settings):
    """How candidates are judged, for the aggregations vote and weighted."""

    candidates_per_call: int = setting(
        8, "Number of candidates in one question to a judge.", ge=1
    )
    llms: Names = setting(
        (),
        "LLMs that judge the proposals, for the aggregations vote and weighted. Default: the LLMs that "
        "write them.",
    )
    purpose: Literal["match", "search", "group"] = setting(
        "match",
        "When `label judge` counts two texts as same: they say the same (match), one answers the other or "
        "asks the same (search), or they have one topic or intent (group).",
    )


class EnsembleSettings(Settings):
    """How the proposals of several LLMs become labels."""

    members: Names = setting(
        ("chatgpt", "llama", "chatglm"), "The LLMs that `--llm ensemble` uses."
    )
    aggregation: AggregationName = setting(
        "union",
        "How proposals become labels: union (all that pass the filters), vote (majority of the judges) or "
        "weighted (votes weighted by the judges' accuracies).",
    )
    unrelated_is_negative: bool = setting(
        True, "Count a judge's vote `unrelated` as confirming a negative."
    )
    reversed_pairs: Literal["drop", "swap"] = setting(
        "drop",
        "Drop or swap positives that are judged opposite, and negatives that are judged same.",
    )
    min_confidence: float = setting(
        0.6, "Minimum confidence of a pair (aggregation weighted).", ge=0, le=1
    )
    min_items: int = setting(
        150,
        "Minimum number of judged candidates for weighted; with fewer, the majority decides.",
        ge=1,
    )

    @property
    def rule(self) -> Aggregation:
        """The aggregation."""
        return AGGREGATIONS[self.aggregation]


class BudgetSettings(Settings):
    """Limits on the spending of a run, including earlier sessions; unset: no limit."""

    max_cost: float | None = setting(
        None,
        "Maximum cost in US dollars, summed over all runs with the same `work`.",
        ge=0,
    )
    max_tokens: int | None = setting(
        None,
        "Maximum number of tokens in prompts and answers, summed over all runs with the same `work`.",
        ge=0,
    )
    max_requests: int | None = setting(
        None,
        "Maximum number of calls, summed over all runs with the same `work`; each attempt counts.",
        ge=0,
    )


class BreakerSettings(Settings):
    """When to stop calling a server that keeps failing."""

    window: int = setting(
        50, "Number of recent attempts among which failures are counted.", ge=5
    )
    max_failures: float = setting(
        0.8,
        "Stop calling an LLM if this share of its recent attempts failed, for a minute if it has answered.",
        gt=0,
        le=1,
    )
    refusals: int = setting(
        10,
        "Stop calling an LLM after this many consecutive refusals with the same text.",
        ge=1,
    )


class TextSplitSettings(Settings):
    """Shares of the source texts; train gets the rest."""

    validation: float = setting(
        0.05, "Share of the source texts in the validation split.", ge=0, lt=1
    )
    test: float = setting(
        0.05, "Share of the source texts in the test split.", ge=0, lt=1
    )

    @model_validator(mode="after")
    def _leaves_train(self) -> TextSplitSettings:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test leave nothing for train")
        return self


class LabelSettings(Settings):
    """A whole labelling run."""

    task: TaskName = setting(
        DEFAULT_TASK,
        f"What LLMs write for each text: {listed(_MEANINGS, 'or')}. {listed(_TRIPLET_TASKS, 'and')} make"
        " triplets.",
    )
    llms: Names = setting(
        (), "LLMs that write proposals; `ensemble` stands for `ensemble.members`."
    )
    size: int = setting(
        3,
        "Number of sentences to request from each LLM, for each text and polarity.",
        ge=1,
        le=100,
    )
    samples: int = setting(
        1,
        "Number of answers to request for each question; rules give one. With several, "
        "`llm.NAME.temperature` must not be 0.",
        ge=1,
        le=100,
    )
    seed: int = setting(42, "Seed of every random choice.", ge=0, lt=2**32)
    local_only: bool = setting(
        False, "Refuse LLMs that may send text to another machine."
    )
    prompt: PromptSettings = PromptSettings()
    input: InputSettings = InputSettings()
    filters: FilterSettings = FilterSettings()
    judge: JudgeSettings = JudgeSettings()
    ensemble: EnsembleSettings = EnsembleSettings()
    budget: BudgetSettings = BudgetSettings()
    breaker: BreakerSettings = BreakerSettings()
    split: TextSplitSettings = TextSplitSettings()
    llm: dict[str, LlmSettings] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _add_defaults(cls, tree: dict[str, object]) -> dict[str, object]:
        """Add the built-in LLMs, and the prompt of every task but the default."""
        llms = tree.get("llm", {})
        if isinstance(llms, dict):
            tree = {**tree, "llm": with_built_in(llms)}
        task = tree.get("task", DEFAULT_TASK)
        if task == "judge":
            raise ValueError("task judge: to judge existing pairs, run `label judge`")
        prompt = tree.get("prompt", {})
        if task != DEFAULT_TASK and isinstance(prompt, dict):
            tree = {**tree, "prompt": {"template": task, **prompt}}
        return tree

    @model_validator(mode="after")
    def _fits_its_task(self) -> LabelSettings:
        labelling = self.labelling
        if labelling.prompt and self.prompt.template in ("paper", "hardened"):
            raise ValueError(
                f"prompt.template {self.prompt.template} belongs to the task {DEFAULT_TASK}; leave it out to"
                f" use the prompt of the task {self.task}, or give a file"
            )
        if labelling.makes_triplets and set(self.prompt.polarities) != {*POLARITIES}:
            raise ValueError(
                f"prompt.polarities: the task {self.task} makes triplets, which need both"
            )
        if self.ensemble.rule.is_judged and not labelling.can_be_judged:
            raise ValueError(
                f"ensemble.aggregation {self.ensemble.aggregation}: judges compare meanings, and the task"
                f" {self.task} pairs texts of different meaning; use union"
            )
        return self

    @model_validator(mode="after")
    def _llms_can_be_used(self) -> LabelSettings:
        for name in (*self.proposers, *self.judge.llms):
            if name not in self.llm:
                known = sorted(self.llm)
                if name in self.proposers:
                    known.append("ensemble")
                raise ValueError(
                    f"no LLM is named {name!r}; expected {listed(known, 'or')}, or {how_to_add(name)}"
                )
        for name in self.proposers:
            if self.llm[name].is_rules and self.task != DEFAULT_TASK:
                raise ValueError(
                    f"task {self.task}: {name} is a set of rules, which has only the task {DEFAULT_TASK}; its"
                    " dataset has triplets, too"
                )
            if self.samples > 1 and self.llm[name].temperature == 0:
                raise ValueError(
                    f"samples {self.samples}: all answers of {name} are equal at temperature 0; set"
                    f" llm.{name}.temperature, for example to 0.8"
                )
        if self.ensemble.rule.is_judged and self.llms and not self.judges:
            raise ValueError(
                f"ensemble.aggregation {self.ensemble.aggregation}: rules can't judge; name an LLM in judge.llms,"
                " or use union"
            )
        return self

    @property
    def labelling(self) -> LabellingTask:
        """What differs between tasks."""
        return TASKS[self.task]

    @property
    def proposers(self) -> tuple[str, ...]:
        """The LLMs that propose, without repeats; `ensemble` is replaced by its members."""
        names = dict[str, None]()
        for name in self.llms:
            members = self.ensemble.members if name == "ensemble" else (name,)
            names |= dict.fromkeys(members)
        return tuple(names)

    @property
    def optional(self) -> frozenset[str]:
        """Members of `ensemble` that are not named elsewhere: they are left out if they are unavailable."""
        members = self.ensemble.members if "ensemble" in self.llms else ()
        return frozenset(members) - {*self.llms, *self.judge.llms}

    @property
    def judges(self) -> tuple[str, ...]:
        """The LLMs that judge; empty if the aggregation needs no judges."""
        if not self.ensemble.rule.is_judged:
            return ()
        names = self.judge.llms or self.proposers
        return tuple(name for name in names if not self.llm[name].is_rules)
