"""What there are kinds of: LLMs, strategies, labelling tasks. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

OWN = "python:"  # begins the name of a function that a person gave from Python


@dataclass(frozen=True, slots=True)
class LlmKind:
    """A kind of LLM."""

    place: str
    is_llm: bool = True


@dataclass(frozen=True, slots=True)
class EnsembleStrategy:
    """How proposals and judgements become labels."""

    place: str
    meaning: str
    is_judged: bool = False
    is_graded: bool = False


@dataclass(frozen=True, slots=True)
class LabellingKind:
    """A labelling task: what LLMs are asked about each text, and what is read out of their answers."""

    triplets: bool = True
    is_judged: bool = False


LLM_KINDS: Mapping[str, LlmKind] = {
    **dict.fromkeys(
        ("openai", "openai_compatible", "glm", "anthropic", "gemini"),
        LlmKind("clients.server:ServerProvider"),
    ),
    "local": LlmKind("clients.local:LocalProvider"),
    "function": LlmKind("clients.function:FunctionProvider"),
    "wordnet": LlmKind("clients.wordnet:WordnetProvider", is_llm=False),
}

STRATEGIES: Mapping[str, EnsembleStrategy] = {
    "union": EnsembleStrategy(
        "judging.ensemble:union", "every proposal that passed the filters, whoever made it"
    ),
    "vote": EnsembleStrategy(
        "judging.ensemble:vote",
        "proposals that more judges confirmed than denied, each judging blind and none its own",
        is_judged=True,
    ),
    "weighted": EnsembleStrategy(
        "judging.ensemble:weighted",
        "proposals that judges confirmed, each judging blind and none its own, votes weighed by the"
        " judges' estimated accuracy; the label follows from the probabilities that result",
        is_judged=True,
        is_graded=True,
    ),
}

TASKS: Mapping[str, LabellingKind] = {
    "papers": LabellingKind(triplets=False, is_judged=True),
    "triplet": LabellingKind(is_judged=True),
    "query": LabellingKind(),
}


def strategy_of(name: str) -> EnsembleStrategy:
    """A strategy by its name, or what is known of a function that a person gave."""
    if name.startswith(OWN):
        return EnsembleStrategy("", "what the function `{strategy}`, given from Python, decided to keep")
    return STRATEGIES[name]


def load(place: str) -> Any:
    """What a table's line names; imported when it is needed, as each kind brings libraries of its own."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"llm_labeler.{module}"), name)


def own_name(function: Any) -> str:
    """How a function of somebody's is named in records: `python:module.qualified_name`."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{OWN}{named.__module__}.{named.__qualname__}"
