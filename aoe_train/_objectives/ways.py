"""Ways of training that take the place of an objective's parts, a line each: what the papers compare with.

A way is given the text model and a batch's tokens, and may run the model as it likes: with other tokens, as a
second copy, with a decoder behind it. Its module is a file in `aoe_train._baselines`, and a preset has its
name. Nothing here imports torch, so a command can refuse before it loads a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aoe_train._records import Kind
from pairkit.errors import ConfigError


class Way(NamedTuple):
    """A line of the table.

    Attributes:
        made_by: Module and class in `aoe_train._baselines`.
        about: Name, authors and arXiv number.
        lr: Learning rate where none is given: the paper's, for a BERT of base size; InferSent's is ours.
        dropout: Whether dropout makes its two views of a text.
        kinds: Rows that it can train on.
        encoder: Settings of the encoder that are part of it, which its preset gives.
    """

    made_by: str
    about: str
    lr: float
    dropout: bool = False
    kinds: tuple[Kind, ...] = ("single",)
    encoder: Mapping[str, Any] = {}


WAYS: Mapping[str, Way] = {
    "ct": Way("ct.ContrastiveTension", "Contrastive Tension (Carlsson et al., 2021)", 1e-5),
    "consert": Way(
        "consert.ConSert", "ConSERT (Yan et al., 2021, arXiv 2105.11741)", 5e-7, kinds=("single", "binary")
    ),
    "diffcse": Way("diffcse.DiffCse", "DiffCSE (Chuang et al., 2022, arXiv 2204.10298)", 7e-6, dropout=True),
    "infersent": Way(
        "infersent.InferSent",
        "InferSent (Conneau et al., 2017, arXiv 1705.02364)",
        1e-3,
        kinds=("binary", "triplet"),
        encoder={"pooling": "max"},
    ),
    "isbert": Way(
        "isbert.IsBert",
        "IS-BERT (Zhang et al., 2020, arXiv 2009.12061)",
        2e-5,
        encoder={"pooling": "avg", "ngrams": (1, 3, 5)},
    ),
    "promptbert": Way(
        "promptbert.PromptBert",
        "PromptBERT (Jiang et al., 2022, arXiv 2201.04337)",
        1e-5,
        encoder={
            "pooling": "mask",
            "prompts": {"promptbert": 'This sentence of "{text}" means [MASK].'},
            "default_prompt_name": "promptbert",
        },
    ),
    "tsdae": Way("tsdae.Tsdae", "TSDAE (Wang et al., 2021, arXiv 2104.06979)", 3e-5),
    "whitenedcse": Way(
        "whitenedcse.WhitenedCse", "WhitenedCSE (Zhuo et al., 2023, arXiv 2305.17746)", 3e-5, dropout=True
    ),
}


def check_way(name: str, kind: Kind) -> None:
    """Refuse rows that a way can't train on.

    Raises:
        ConfigError: Says what it needs, and how to give it.
    """
    way = WAYS[name]
    if kind not in way.kinds:
        learns = (
            "texts alone, such as a text file of one a line, or one column (--columns text=NAME)"
            if "single" in way.kinds
            else "pairs with labels, such as NLI's entailment and contradiction, or triplets"
        )
        raise ConfigError(
            f"preset {name}: found {kind} data, expected {' or '.join(way.kinds)} rows: {way.about} learns"
            f" from {learns}"
        )


def check_alone(name: str, beside: Mapping[str, bool]) -> None:
    """Refuse what a run asks for that no way goes with.

    Args:
        name: The way's.
        beside: Whether each is asked for, by what a person calls it.

    Raises:
        ConfigError: Names the first that is.
    """
    for what, asked in beside.items():
        if asked:
            raise ConfigError(f"preset {name}: does not go with {what}; leave one of them out")
