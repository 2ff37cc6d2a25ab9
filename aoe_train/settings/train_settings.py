"""The settings of a training run, with their defaults and constraints; the prompts of a model.

A prompt is words that a model was trained to read with a text, stored in the model by name. It is put before
the text, as in sentence-transformers: `query: `. If it contains `{text}`, the text replaces that: `Summarize
sentence {text} in one word:`. Braces within texts have no meaning.

As in sentence-transformers, every model has the prompts `query` and `document`. They are empty unless the
model defines them, or its default prompt has words after the text; then they are that prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from aoe_train.objectives.objective_settings import PRESETS as OBJECTIVES
from aoe_train.objectives.objective_settings import ObjectiveSettings
from aoe_train.settings.run_settings import (
    BatchSettings,
    CardSettings,
    Conflicts,
    DataSettings,
    DenseSettings,
    GuideSettings,
    LogSettings,
    LoraSettings,
    MixSettings,
    OptimSettings,
    RunSettings,
    TeacherSettings,
    dense_layers,
    lora_or_none,
)
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.settings import PathText, Settings, argument, setting
from pairkit.dataset.labels import LabelRange, LabelValues

PLACE = "{text}"
DEFAULT = "default"
"""Name of an unnamed prompt for all texts."""
QUERY = "query"
DOCUMENT = "document"
DOCUMENTS = (DOCUMENT, "passage", "corpus")
"""Names of the prompt for searched texts; the first non-empty one is used."""


class Prompt(NamedTuple):
    """The words before and after a text."""

    before: str
    after: str = ""


def read_prompt(words: str) -> Prompt:
    """Split a prompt at `{text}`."""
    count = words.count(PLACE)
    if count > 1:
        raise ConfigError(
            f"prompt {one_line(words, 80)!r}: has {PLACE} {count} times; expected once at most"
        )
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"prompt {one_line(words, 80)!r}: has a lone surrogate; expected valid Unicode"
        ) from error
    before, _, after = words.partition(PLACE)
    return Prompt(before, after)


def written_out(words: str, text: str) -> str:
    """The text with its prompt, for models that we don't tokenise for."""
    return text.join(read_prompt(words))


class NamedPrompts:
    """A model's prompts by name, and the name of its default."""

    def __init__(self, prompts: Mapping[str, str], default: str | None = None) -> None:
        """Check the prompts."""
        for name, words in prompts.items():
            if not name.strip():
                raise ConfigError(f"prompt {one_line(words, 80)!r}: has an empty name")
            read_prompt(words)
        self.prompts = prompts
        self.default = default
        implied = prompts.get(default or "", "")
        if not read_prompt(implied).after:
            implied = ""
        self.known = {QUERY: implied, DOCUMENT: implied, **prompts}
        """All prompts that can be used by name."""
        if default is not None:
            self.named(default)

    def named(self, name: str) -> str:
        """The words of a prompt."""
        if name not in self.known:
            known = ", ".join(
                repr(one_line(known_name, 80)) for known_name in self.known
            )
            raise ConfigError(
                f"no prompt {one_line(name, 80)!r}; this model has {known}"
            )
        return self.known[name]

    def chosen(self, *, prompt: str | None = None, name: str | None = None) -> str:
        """The words to use: `prompt` itself, the prompt with this name, or else the default."""
        if prompt is not None:
            if name is not None:
                raise ConfigError("--prompt and --prompt-name: give only one of them")
            read_prompt(prompt)
            return prompt
        if name is None:
            name = self.default
        return "" if name is None else self.named(name)

    @property
    def query(self) -> str:
        """The words for queries."""
        return self.known[QUERY]

    @property
    def document(self) -> str:
        """The words for searched texts."""
        prompts = map(self.known.get, DOCUMENTS)
        return next(filter(None, prompts), "")

    @property
    def around_all(self) -> str | None:
        """The only prompt, if it is the default and has words after the text; a tokenizer can then add it."""
        if [*self.prompts] != [self.default]:
            return None
        (words,) = self.prompts.values()
        return words if read_prompt(words).after else None

    @property
    def after_text(self) -> str | None:
        """The name of a prompt with words after the text, if there is one."""
        return next(
            (name for name, words in self.prompts.items() if read_prompt(words).after),
            None,
        )


Pooling = Literal[
    "auto",
    "cls",
    "avg",
    "max",
    "last",
    "cls-avg",
    "first-last-avg",
    "weighted-mean",
    "cells",
]
Purpose = Literal["group", "search", "match"]
EncodingPrecision = Literal["auto", "fp32", "bf16", "fp16", "int8"]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Tree = dict[str, Any]

# Names of the papers, sentence-transformers and angle-emb.
_POOLINGS = {
    "last-avg": "avg",
    "mean": "avg",
    "last-max": "max",
    "cls-last-avg": "cls-avg",
}


def named_precision(name: str | None) -> EncodingPrecision:
    """Check the name of a precision for encoding; None is `auto`."""
    precision: EncodingPrecision = argument(
        "precision", name or "auto", EncodingPrecision
    )
    return precision


class EncoderSettings(Settings):
    """How a text becomes a vector; stored in `aoe.json` of the model folder."""

    pooling: Pooling = setting(
        "auto",
        "How token vectors become one vector: cls, avg, max, last, cls-avg, first-last-avg or "
        "weighted-mean. auto takes the backbone's pooling, else cls for encoders and last for decoders.",
    )
    max_length: int | None = setting(
        None,
        "Maximum number of tokens of a text with its prompt. Default: the backbone's limit, at most 512.",
        ge=4,
    )
    prompts: dict[str, str] = setting(
        {},
        'Prompts by name, before a text or around {text}, such as {query = "query: ", document = "passage: '
        '"}.',
    )
    default_prompt_name: str | None = setting(
        None, "Name of the prompt that is used by default."
    )
    include_prompt: bool = setting(True, "Include the prompt's tokens in pooling.")
    dense: Annotated[tuple[DenseSettings, ...], BeforeValidator(dense_layers)] = ()
    layers: int | None = setting(
        None, "Use the backbone's first N layers. Default: all.", ge=1
    )
    dim: int | None = setting(
        None,
        "Keep the first N dimensions of each vector (truncate_dim of sentence-transformers). Default: all.",
        ge=1,
    )
    similarity_fn_name: Similarity = setting(
        "cosine", "Function that compares two vectors."
    )
    normalize: bool = setting(False, "Scale vectors to length 1.")
    bidirectional: bool = setting(
        False, "Let every token of a decoder attend to the whole text."
    )

    @field_validator("pooling", mode="before")
    @classmethod
    def _other_names(cls, value: object) -> object:
        if isinstance(value, str):
            value = value.replace("_", "-")
        return _POOLINGS.get(str(value), value)

    @model_validator(mode="after")
    def _check_prompts(self) -> EncoderSettings:
        try:
            NamedPrompts(self.prompts, self.default_prompt_name)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def named_prompts(self) -> NamedPrompts:
        """The prompts with the default's name."""
        return NamedPrompts(self.prompts, self.default_prompt_name)


def merged(below: Tree, above: Tree) -> Tree:
    """Merge two trees: `above` overrides `below` key by key; values that aren't tables replace each other."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            result[key] = merged(below[key], above[key])
    return result


AUTO = "auto"
PAPERS = "-paper"
DOMAIN = "domain"
_PAPERS: Tree = {
    "optim": OptimSettings().model_dump(exclude={"if_not_better"}),
    "batches": {"strategy": "shuffle"},
}
_PAPERS_OBJECTIVES: Mapping[str, Tree] = {
    "angle": {"duplicates": "positive"},
    "aoe": {"tau": {"angle": 0.05}},
}
# A few large steps of the last layers on rows of one domain. Steps, sizes of batches, learning rate, weight
# mix and parts depend on the rows; see `data/defaults.py`. `benchmarks/domain.py` measures alternatives.
_DOMAIN: Tree = {
    "objective": {"tau": {"contrastive": 0.05, "angle": 0.2}, "symmetric": True},
    "batches": {"strategy": "shuffle"},  # in-batch negatives of all lengths
    "optim": {"scheduler": "linear", "average": 0.0, "top_layers": 2},
}
# Settings of each preset, which any given setting overrides. `auto` leaves everything to `data/defaults.py`,
# the objectives' names leave all but the objective to it, and the papers' presets leave nothing to it.
PRESETS: Mapping[str, Tree] = {
    AUTO: {},
    **{
        name: {"objective": objective.model_dump(exclude_unset=True)}
        for name, objective in OBJECTIVES.items()
    },
    **{
        name + PAPERS: {
            "objective": merged(
                objective.model_dump(), _PAPERS_OBJECTIVES.get(name, {})
            ),
            **_PAPERS,
        }
        for name, objective in OBJECTIVES.items()
    },
    DOMAIN: _DOMAIN,
}


def _known_preset(name: str) -> str:
    """Refuse a name that is not a preset's."""
    if name not in PRESETS:
        raise ValueError(f"expected one of {', '.join(PRESETS)}")
    return name


PresetName = Annotated[str, AfterValidator(_known_preset)]


class DatasetSettings(Settings):
    """Settings of one dataset or dev set that differ from the run's."""

    data: PathText | None = setting(
        None, "Training rows of this dataset, as `--data NAME=DATA`."
    )
    dev_data: PathText | None = setting(
        None, "Held-out rows of this dataset, as `--dev-data NAME=DATA`."
    )
    columns: dict[str, str] | None = setting(
        None,
        'Roles of the columns, such as {anchor = "question", positive = "answer"}. Default: `--columns`.',
    )
    labels: LabelValues | None = setting(
        None, "Number for each label of the dataset. Default: data.labels."
    )
    label_range: LabelRange | None = setting(
        None,
        "Lowest and highest score of this dataset, which become 0 and 1. Default: data.label_range.",
    )
    conflicts: Conflicts | None = setting(
        None,
        "What to do with pairs that have different labels. Default: data.conflicts.",
    )
    weight: float = setting(
        1.0, "Relative frequency of this dataset in the mixture.", gt=0
    )
    batch_size: int | None = setting(
        None,
        "Number of this dataset's rows in a batch of each process. Default: optim.batch_size.",
        ge=2,
    )
    prompts: str | dict[str, str] | None = setting(
        None,
        "Prompts of this dataset and its dev set, one or by column. Default: the run's `prompts`.",
    )
    preset: PresetName | None = setting(
        None, "Objective of this dataset. Default: the run's `preset`."
    )
    objective: ObjectiveSettings = setting(
        ObjectiveSettings(),
        "Loss parts of this dataset and their options; unset keys are the run's.",
    )


class TrainSettings(Settings):
    """A whole training run."""

    prompts: str | dict[str, str] | None = setting(
        None,
        'Prompt before each text, or around {text}; or by column, such as {anchor = "query: ", positive '
        '= "passage: "}. The model stores them: one prompt for all texts becomes its default, those of '
        "columns are named `query`, `document` and so on. Default: the backbone's default prompt.",
    )
    preset: PresetName = setting(
        AUTO,
        "Training objective: angle, aoe, cosent, sbert, simcse or domain. With the suffix -paper, such "
        "as angle-paper, the paper's other settings are used, too. domain adapts a model to texts of one "
        "domain: plain texts, or triplets of `label`. auto chooses by the kind of rows.",
    )
    purpose: Purpose | None = setting(
        None,
        "What the preset domain trains the model for, on plain texts: group (topics, intents, routing, "
        "FAQ), search, or match (duplicates, near-paraphrases). Default: search.",
    )
    seed: int = setting(42, "Seed of every random choice.", ge=0, lt=2**32)
    data: DataSettings = DataSettings()
    encoder: EncoderSettings = EncoderSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    batches: BatchSettings = BatchSettings()
    optim: OptimSettings = OptimSettings()
    lora: Annotated[LoraSettings | None, BeforeValidator(lora_or_none)] = setting(
        None,
        "Train adapters instead of all weights; false: all weights. Default: adapters if the backbone is a "
        "decoder.",
    )
    guide: GuideSettings = GuideSettings()
    teacher: TeacherSettings = TeacherSettings()
    run: RunSettings = RunSettings()
    log: LogSettings = LogSettings()
    card: CardSettings = CardSettings()
    mix: MixSettings = MixSettings()
    datasets: dict[str, DatasetSettings] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _put_preset_beneath(cls, tree: object) -> object:
        if not isinstance(tree, dict):
            return tree
        # Another name than a preset's is refused later.
        return merged(PRESETS.get(str(tree.get("preset", AUTO)), {}), tree)

    @model_validator(mode="after")
    def _each_dataset(self) -> TrainSettings:
        for name in self.datasets:
            try:
                self.of(name)
            except ValidationError as error:
                message = error.errors()[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"datasets.{name}: {message}") from error
        return self

    def section(self, dataset: str) -> DatasetSettings:
        """A dataset's own section, which may be empty."""
        return self.datasets.get(dataset, DatasetSettings())

    def of(self, dataset: str) -> TrainSettings:
        """The settings of one dataset or dev set: the run's, overridden by its own section."""
        if not self.datasets:
            return self
        section = self.section(dataset).model_dump(exclude_unset=True)
        run = self.model_dump(exclude_unset=True, exclude={"datasets"})
        if preset := section.get("preset"):
            run["preset"] = preset
            # Replaces all of the run's preset, and the run's weights.
            replaced = PRESETS[self.preset].get("objective", {})
            run["objective"] = {
                name: value
                for name, value in run.get("objective", {}).items()
                if name != "weights" and value != replaced.get(name)
            }
        if section.get("prompts") is not None:
            run["prompts"] = section["prompts"]
        data = {
            name: section[name]
            for name in DataSettings.model_fields
            if section.get(name) is not None
        }
        overrides: Tree = {"data": data, "objective": section.get("objective", {})}
        if section.get("batch_size") is not None:
            overrides["optim"] = {"batch_size": section["batch_size"]}
        return TrainSettings.model_validate(merged(run, overrides))
