"""All settings of a labelling run, and the kinds of LLMs, aggregations and tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from llm_labeler.records import CHANGES, MAX_PRICE, MAX_TOKENS, POLARITIES, ChangeKind, Polarity
from pairkit.app.errors import ConfigError
from pairkit.app.settings import Settings
from pairkit.openai_api.credentials import variable_name


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A way to turn proposals and votes into labels."""

    meaning: str
    is_judged: bool = False
    is_graded: bool = False


@dataclass(frozen=True, slots=True)
class LabellingKind:
    """A labelling task: the kind of sentences that LLMs write for each text."""

    triplets: bool = True
    is_judged: bool = False


RULES = "wordnet"  # rules over a dictionary, not an LLM
LLM_KINDS = ("openai", "openai_compatible", "glm", "anthropic", "gemini", "function", RULES)

AGGREGATIONS: Mapping[str, Aggregation] = {
    "union": Aggregation("every proposal that passed the filters"),
    "vote": Aggregation(
        "proposals whose polarity has more votes than any other verdict; judges see neither the polarity nor"
        " their own proposals",
        is_judged=True,
    ),
    "weighted": Aggregation(
        "proposals that judges confirmed, with votes weighted by the judges' estimated accuracy; the label is"
        " the resulting probability. Judges see neither the polarity nor their own proposals",
        is_judged=True,
        is_graded=True,
    ),
}

TASKS: Mapping[str, LabellingKind] = {
    "papers": LabellingKind(triplets=False, is_judged=True),
    "triplet": LabellingKind(is_judged=True),
    "query": LabellingKind(),
}


_ANSWER_FIELDS = ("kind", "model", "temperature", "top_p", "seed", "max_tokens", "extra", "structured")
Structured = Literal["auto", "off", "strict"]
Tree = dict[str, Any]

_KIND_ALIASES = {"compatible": "openai_compatible", "server": "openai_compatible"}


def _one_of(*names: str) -> AfterValidator:
    """Accept only these names."""

    def check(name: str) -> str:
        if name not in names:
            *others, last = map(repr, names)
            raise ValueError(f"expected {', '.join(others)} or {last}")
        return name

    return AfterValidator(check)


def _names(value: object) -> object:
    """Split `NAME,NAME`."""
    if not isinstance(value, str):
        return value
    names = [part.strip() for part in value.split(",")]
    if not all(names):
        raise ValueError("expected NAME or NAME,NAME, such as chatgpt,llama")
    return names


def _polarities(value: object) -> object:
    """Accept `both` or the name of one polarity."""
    if not isinstance(value, str):
        return value
    if value != "both" and value not in POLARITIES:
        raise ValueError("expected positive, negative or both")
    return POLARITIES if value == "both" else (value,)


Changes = Annotated[tuple[ChangeKind, ...], BeforeValidator(_names)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Polarities = Annotated[tuple[Polarity, ...], BeforeValidator(_polarities)]


class LlmSettings(Settings):
    """One LLM, `[llm.NAME]`: its server, prices, limits and parameters."""

    # openai, openai_compatible, glm, anthropic, gemini, wordnet; function: from Python
    kind: Annotated[str, _one_of(*LLM_KINDS)]
    model: str = ""  # the server's name of the model
    base_url: str | None = None  # http(s)://…/v1; unset: the provider's own
    # environment variable with the key; unset: the provider's usual one at its own host, no key elsewhere
    api_key_env: Annotated[str, AfterValidator(variable_name)] | None = None
    # the LLM runs on this machine and no text leaves it; false for a local gateway to a remote LLM
    local: bool = False
    plain_http: bool = False  # send the key unencrypted to another machine
    ca_file: Path | None = None  # trusted certificates (PEM); unset: those of SSL_CERT_FILE or the system
    must_be_listed: bool = True  # stop if the model is not in the server's list of models
    # US dollars per million prompt tokens; unset: as published, 0 on a server of your own, else unknown
    price_in: float | None = Field(default=None, ge=0, le=MAX_PRICE)
    # US dollars per million answer tokens; unset: as price_in
    price_out: float | None = Field(default=None, ge=0, le=MAX_PRICE)
    concurrency: int = Field(default=16, ge=1)  # concurrent calls
    rpm: int | None = Field(default=None, ge=1)  # requests per minute; unset: only the server limits them
    tpm: int | None = Field(default=None, ge=1)  # tokens per minute
    timeout_s: float = Field(default=60.0, gt=0)  # for one answer
    attempts: int = Field(default=8, ge=1)  # attempts per question, including the first
    temperature: float | None = Field(default=None, ge=0)  # sampling temperature; unset: the server's default
    top_p: float | None = Field(default=None, gt=0, le=1)  # nucleus sampling; unset: the server's default
    seed: int | None = None  # sent with each request if set
    max_tokens: int = Field(default=512, ge=1, le=MAX_TOKENS)  # maximum tokens of an answer
    structured: Structured = "auto"  # whether to request JSON; the parser reads any format
    extra: Tree = Field(default_factory=dict)  # further fields of the request, such as thinking = …

    def answer_parameters(self, name: str, url: str) -> str:
        """The parameters that affect answers, as JSON."""
        values = {field: getattr(self, field) for field in _ANSWER_FIELDS} | {"base_url": url}
        try:
            return json.dumps(values, sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"llm {name}: extra can't be written as JSON ({error}); use strings, numbers, lists and"
                f" tables in [llm.{name}.extra]"
            ) from error

    @field_validator("kind", mode="before")
    @classmethod
    def _without_alias(cls, value: object) -> object:
        return _KIND_ALIASES.get(name := value.replace("-", "_"), name) if isinstance(value, str) else value


class PromptSettings(Settings):
    """The prompts sent to the LLMs."""

    # hardened, paper, or a file with {size}, {text} and {polarity}; other tasks: the task's name, or a file
    template: str = "hardened"
    # positive: sentences with the same meaning; negative: with the opposite
    polarities: Polarities = Field(default=POLARITIES, min_length=1)
    examples: Path | None = None  # file of few-shot examples: pairs or triplets
    # task triplet: what hard negatives may change
    changes: Changes = Field(default=CHANGES, min_length=1)


class InputSettings(Settings):
    """Selection of the sentences."""

    min_chars: int = Field(default=1, ge=1)  # shorter sentences are dropped and counted
    max_chars: int = Field(default=2000, ge=1)  # longer sentences are dropped and counted
    limit: int | None = Field(default=None, ge=1)  # use only the first N usable sentences
    draw: int | None = Field(default=None, ge=1)  # use a random sample of N of these


class FilterSettings(Settings):
    """Which proposals are kept."""

    # minimum length of a candidate, as a share of the length of its sentence
    min_length_ratio: float = Field(default=0.25, ge=0)
    max_length_ratio: float = Field(default=4.0, gt=0)  # maximum length, likewise
    same_script: bool = True  # a candidate must be in the main script of its sentence
    # minimum share of common content words; 0.2 also drops some good paraphrases
    min_shared: float = Field(default=0.0, ge=0, le=1)
    same_kind: bool = True  # a positive of a question must be a question
    # minimum number of words by which a negative differs
    min_differing_words: int = Field(default=0, ge=0)
    # task triplet: minimum share of content words that a negative keeps
    min_kept: float = Field(default=0.5, ge=0, le=1)
    # a negative at or above this similarity counts as a copy
    antonym_similarity: float = Field(default=0.95, gt=0, le=1)


class JudgeSettings(Settings):
    """How candidates are judged, for the aggregations vote and weighted."""

    candidates_per_call: int = Field(default=8, ge=1)  # candidates in one question to a judge
    llms: Names = ()  # the judges; empty: the LLMs that propose


class EnsembleSettings(Settings):
    """How the proposals of several LLMs become labels."""

    members: tuple[str, ...] = ("chatgpt", "llama", "chatglm")  # the LLMs of `--llm ensemble`
    aggregation: Annotated[str, _one_of(*AGGREGATIONS)] = "union"  # union, vote or weighted
    unrelated_is_negative: bool = True  # vote, weighted: a judge's `unrelated` confirms a negative
    # drop or swap positives that are judged opposite, and negatives that are judged same
    reversed_pairs: Literal["drop", "swap"] = "drop"
    min_confidence: float = Field(default=0.6, ge=0, le=1)  # weighted: drop pairs below it
    min_items: int = Field(default=150, ge=1)  # weighted: with fewer judged candidates, the majority decides


class BudgetSettings(Settings):
    """Limits on the spending of a run, including earlier sessions; unset: no limit."""

    max_cost: float | None = Field(default=None, ge=0)  # US dollars, over all sessions
    max_tokens: int | None = Field(default=None, ge=0)  # tokens of prompts and answers, over all sessions
    max_requests: int | None = Field(default=None, ge=0)  # calls over all sessions; each attempt counts


class BreakerSettings(Settings):
    """When to stop calling a server that keeps failing."""

    window: int = Field(default=50, ge=5)  # number of recent attempts that are examined
    max_failures: float = Field(default=0.8, gt=0, le=1)  # stop calling an LLM at this share of failures
    # stop calling an LLM after this many consecutive refusals with the same text
    refusals: int = Field(default=10, ge=1)


class TextSplitSettings(Settings):
    """Shares of the source texts; train gets the rest."""

    validation: float = Field(default=0.05, ge=0, lt=1)  # share of the source texts
    test: float = Field(default=0.05, ge=0, lt=1)  # share of the source texts

    @model_validator(mode="after")
    def _leaves_train(self) -> TextSplitSettings:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test leave nothing for train")
        return self


PAPERS = "papers"  # the default task
# `--config` adds entries and overrides fields of these.
BUILT_IN_LLMS: Mapping[str, Tree] = {
    "chatgpt": {"kind": "openai", "model": "gpt-4o-mini"},
    # vLLM's address; Ollama's is http://localhost:11434/v1, llama.cpp's http://localhost:8080/v1
    "llama": {
        "kind": "openai_compatible",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "base_url": "http://localhost:8000/v1",
    },
    "chatglm": {"kind": "glm", "model": "glm-4-flash"},
    "wordnet": {"kind": "wordnet", "model": "wordnet-3.0 rules", "price_in": 0.0, "price_out": 0.0},
}


class LabelSettings(Settings):
    """A whole labelling run."""

    task: Annotated[str, _one_of(*TASKS)] = PAPERS  # papers, triplet or query
    llms: Names = ()  # the LLMs that propose; `ensemble` means its members
    size: int = Field(default=3, ge=1, le=100)  # sentences to request from each LLM, per text and polarity
    samples: int = Field(default=1, ge=1, le=100)  # answers to request for each question; one from rules
    seed: int = Field(default=42, ge=0, lt=2**32)  # seed of every random choice
    local_only: bool = False  # refuse LLMs that may send text to another machine
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
    def _merge_built_in_llms(cls, tree: object) -> object:
        if not isinstance(tree, dict) or not isinstance(configured := tree.get("llm", {}), dict):
            return tree
        entries: Tree = {name: dict(entry) for name, entry in BUILT_IN_LLMS.items()}
        for name, entry in configured.items():
            built_in = entries.get(name, {})
            if isinstance(entry, dict) and entry.get("kind", built_in.get("kind")) == built_in.get("kind"):
                entries[name] = {**built_in, **entry}
            else:
                entries[name] = entry
        return {**tree, "llm": entries}

    @model_validator(mode="before")
    @classmethod
    def _default_prompt_of_task(cls, tree: object) -> object:
        """Every task but `papers` has its own default prompt."""
        if not isinstance(tree, dict) or (task := tree.get("task", PAPERS)) == PAPERS:
            return tree
        if task == "judge":
            raise ValueError("task judge: to judge existing pairs, run `label judge`")
        prompt = tree.get("prompt", {})
        return {**tree, "prompt": {"template": task, **prompt}} if isinstance(prompt, dict) else tree

    @model_validator(mode="after")
    def _fits_its_task(self) -> LabelSettings:
        if self.task == PAPERS:
            return self
        if self.prompt.template in ("paper", "hardened"):
            raise ValueError(
                f"prompt.template {self.prompt.template} belongs to the task {PAPERS}; leave it out to use"
                f" the prompt of the task {self.task}, or give a file"
            )
        if set(self.prompt.polarities) != {*POLARITIES}:
            raise ValueError(f"prompt.polarities: the task {self.task} makes triplets, which need both")
        aggregation = self.ensemble.aggregation
        if AGGREGATIONS[aggregation].is_judged and not TASKS[self.task].is_judged:
            raise ValueError(
                f"ensemble.aggregation {aggregation}: judges compare meanings, and the task {self.task} pairs"
                " texts of different meaning; use union"
            )
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> LabelSettings:
        for name in (*self.proposers, *self.judge.llms):
            if name not in self.llm:
                raise ValueError(
                    f"no LLM is named {name!r}; expected {', '.join(sorted(self.llm))} or ensemble, or add"
                    f" [llm.{name}] to a file for --config"
                )
        if AGGREGATIONS[self.ensemble.aggregation].is_judged and self.llms and not self.judges:
            raise ValueError(
                f"ensemble.aggregation {self.ensemble.aggregation}: rules can't judge; name an LLM in "
                "judge.llms, or use union"
            )
        return self

    @model_validator(mode="after")
    def _samples_differ(self) -> LabelSettings:
        for name in self.proposers if self.samples > 1 else ():
            if self.llm[name].temperature == 0:
                raise ValueError(
                    f"samples {self.samples}: all answers of {name} are equal at temperature 0; set"
                    f" llm.{name}.temperature, for example to 0.8"
                )
        return self

    @property
    def proposers(self) -> tuple[str, ...]:
        """The LLMs that propose, without repeats; `ensemble` is replaced by its members."""
        names = [
            member
            for name in self.llms
            for member in (self.ensemble.members if name == "ensemble" else (name,))
        ]
        return tuple(dict.fromkeys(names))

    @property
    def optional(self) -> frozenset[str]:
        """Members of `ensemble` that are not named elsewhere: they are left out if they are unavailable."""
        members = self.ensemble.members if "ensemble" in self.llms else ()
        return frozenset(members) - {*self.llms, *self.judge.llms}

    @property
    def judges(self) -> tuple[str, ...]:
        """The LLMs that judge; empty if the aggregation needs no judges."""
        if not AGGREGATIONS[self.ensemble.aggregation].is_judged:
            return ()
        names = self.judge.llms or self.proposers
        return tuple(name for name in names if self.llm[name].kind != RULES)  # rules can't judge
