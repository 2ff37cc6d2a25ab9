"""Defaults of `aoe train`, chosen by the kind and number of rows and by the backbone.

`docs/howto/training.md` has them as a table. Batches have 16 rows. The learning rate is constant after the
warm-up, and the mean of the weights over the run is saved, which is steadier than the last weights; of binary
pairs over its second half, as a few hundred of them move the weights far in the first. Rankings of graded
pairs have a temperature of 0.2, those of binary pairs 0.05: at 0.05 a ranking loss depends almost only on the
pairs that are closest to the wrong order. For embeddings of size 768 or more the learning rate is
at most 2e-5; adapters (`--lora`) have 3e-4. A decoder that isn't an encoder yet is trained with adapters and
the papers' prompt, as its last token represents any continuation without one.

The values were chosen on dev data by searches that are not kept. `benchmarks/results/defaults.csv` compares
what they reach; `domain_texts.csv`, `domain_medicine.csv` and `domain.csv` (`benchmarks/domain.py`) do so for
the preset `domain`:

- After three epochs on few labelled pairs a backbone learns nothing, and forgets.
- Texts by LLMs or rules are soon recognised by their style, and large steps then cost general similarity.
- Pairs that the backbone already ranks right teach it nothing, and large steps on them cost AUC.
- Smoothing helps if texts fall into groups, and hurts if single items must be distinguished. No measure
  without labels predicts which, so the user sets the `purpose`.
- With the preset `domain`, 36 steps suit triplets written by hand. On people's pairs with mined negatives 12
  steps averaged at 0.7 are better. In the first person a negated sentence still makes the same request ("my
  card does not work"); such triplets by rules do harm, so the backbone is kept.

Presets that end in `-paper` have the papers' values for everything. With several datasets, each has its own
objective. The run has the lowest learning rate and the fewest epochs of all, with epochs counted over all
rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from aoe_train.objectives.objective_settings import (
    IN_BATCH,
    RANKED,
    TAUGHT,
    ObjectiveSettings,
)
from aoe_train.objectives.training_rows import Kind
from aoe_train.settings.run_settings import Author, MixSettings
from aoe_train.settings.train_settings import (
    AUTO,
    DOMAIN,
    PAPERS,
    PLACE,
    EncoderSettings,
    Purpose,
    TrainSettings,
    Tree,
    merged,
)
from pairkit.base.errors import ConfigError

BATCH_SIZE = 16
_ROWS_TO_PROCESS = 16_000
_LR_SMALL = 5e-6
_LR_LARGE_DIM = 2e-5
_LR_ADAPTERS = 3e-4
_LR_DISTILL = 3e-4
# The embedding size of BERT-base.
_LARGE_DIM = 768
# From this AUC on, pairs have nothing to teach their backbone.
RANKED_RIGHT = 0.98

# Poolings that take a decoder's last token, and the papers' prompt for LLaMA, with which that token helps.
_LAST_TOKEN = ("auto", "last")
_PROMPT = f"Summarize sentence {PLACE} in one word:"

# The preset domain, on triplets and pairs.
_LR_DOMAIN = 1e-4
_BATCH_SIZE_DOMAIN = 32
# From this share of first-person anchors on, rules' negatives do harm.
FIRST_PERSON_SHARE = 0.5
# Such as "my card does not work".
_FIRST_PERSON = re.compile(r"\b(?:I|i|[Mm]y|[Mm]e|[Ww]e|[Oo]ur)\b")
UNSUITED = (
    "warning: rules wrote the negatives of these first-person texts, where a negation is still the same"
    " request, so the backbone's weights are kept; train on the texts themselves, without `label` (or give"
    " --interpolate 0.7)"
)

# The preset domain, on plain texts.
# 300 texts of banking77 make the model better, 100 make it worse (domain_texts.csv).
FEW_TEXTS = 200
# Texts that a batch takes from the neighbourhood of each of its seeds.
FROM_NEIGHBOURHOOD = 3
_BATCH_SIZE_NEIGHBOURS = 48
# Neighbours by the root of the number of texts: 16 of 2,000. Among fewer texts, neighbours are less similar.
_NEIGHBOURS_PER_ROOT = 0.36
# More epochs of few texts overfit.
_MAX_EPOCHS_OF_TEXTS = 2.7
# Settings of the teacher that only plain texts use.
_OF_PLAIN_TEXTS = ("lexical_weight", "neighbours", "smoothing")


class _KindDefaults(NamedTuple):
    """Defaults of a kind of rows."""

    parts: tuple[str, ...]  # of the loss
    lr: float
    max_epochs: int
    tau: float | None = None  # temperature of rankings
    average: float = 1.0  # share of the run, at its end, whose weights are averaged


_KINDS: Mapping[Kind, _KindDefaults] = {
    "binary": _KindDefaults(
        ("cosent", "in_batch", "angle"), 5e-5, 3, 0.05, average=0.5
    ),
    "graded": _KindDefaults(("cosent", "in_batch", "angle"), 5e-5, 3, 0.2),
    "triplet": _KindDefaults(("contrastive", "angle"), 5e-5, 3),
    "positive": _KindDefaults(("contrastive",), 2e-5, 8),
    "single": _KindDefaults(("contrastive",), 1e-5, 8),
}


class _Recipe(NamedTuple):
    """How plain texts are trained on: settings of the teacher, and steps."""

    smoothing: float
    lexical_weight: float
    steps: int


_RECIPES: Mapping[Purpose, _Recipe] = {
    "group": _Recipe(1.0, 0.2, 450),
    "search": _Recipe(0.25, 0.15, 75),
    "match": _Recipe(0.0, 0.1, 75),
}


class _Budget(NamedTuple):
    """Limits of the preset domain: rows in all, maximum epochs, weight of the trained model."""

    rows: int
    epochs: int
    interpolate: float


_SHORT_BUDGET = _Budget(384, 1, 0.7)
_LONG_BUDGET = _Budget(1152, 2, 1.0)
_KEEP_BACKBONE = _SHORT_BUDGET._replace(interpolate=0.0)


class DatasetFacts(NamedTuple):
    """Properties of a dataset that its defaults depend on."""

    kind: Kind
    rows: int
    written: bool = False  # whether LLMs or rules wrote the texts
    auc: float | None = None  # the backbone's, on the pairs before training
    author: Author | None = None  # of the rows, if known
    first_person: float = 0.0  # share of anchors in the first person
    # Whether single texts are trained on with their neighbourhoods.
    neighbours: bool = False

    @property
    def domain_budget(self) -> _Budget:
        """Limits of the preset domain for these rows."""
        if self.author == "people":
            return _LONG_BUDGET
        # Negation doesn't change the meaning of requests, so rules can't write their negatives.
        is_by_rules = self.author == "rules" and self.kind == "triplet"
        if is_by_rules and self.first_person >= FIRST_PERSON_SHARE:
            return _KEEP_BACKBONE
        return _SHORT_BUDGET


def first_person_share(texts: Sequence[str]) -> float:
    """Share of the texts in the first person (English)."""
    count = sum(_FIRST_PERSON.search(text) is not None for text in texts)
    return count / max(len(texts), 1)


def with_decoder_defaults(settings: TrainSettings) -> TrainSettings:
    """Fill unset settings with defaults for a decoder that isn't an encoder yet."""
    if settings.preset.endswith(PAPERS):
        return settings
    defaults: Tree = {}
    if "lora" not in settings.model_fields_set and settings.optim.top_layers is None:
        defaults["lora"] = {}
    has_prompts = settings.prompts or settings.encoder.prompts
    if not has_prompts and settings.encoder.pooling in _LAST_TOKEN:
        defaults["prompts"] = _PROMPT
    return _fill_unset(settings, defaults)


def with_defaults(
    settings: TrainSettings, facts: DatasetFacts, *, dim: int
) -> TrainSettings:
    """Fill unset settings with defaults for the rows and the backbone."""
    defaults: Tree = {
        "objective": _objective(settings, facts.kind),
        "optim": _optim(settings, [facts], facts.rows, dim),
    }
    if facts.neighbours:
        recipe = _RECIPES[settings.purpose or "search"]
        neighbours = round(_NEIGHBOURS_PER_ROOT * math.sqrt(facts.rows))
        defaults["teacher"] = {
            "smoothing": recipe.smoothing,
            "neighbours": max(1, neighbours),
            "lexical_weight": recipe.lexical_weight,
        }
    else:
        _check_unused(settings)
    return _fill_unset(settings, defaults)


def with_defaults_for_all(
    settings: TrainSettings, datasets: Mapping[str, DatasetFacts], *, dim: int
) -> TrainSettings:
    """Fill unset settings for several datasets, and put each one's objective into its own section."""
    _check_unused(settings)
    sections = dict(settings.datasets)
    for name, facts in datasets.items():
        of_dataset = settings.of(name)
        if learns_neighbours(of_dataset, facts.kind):
            raise ConfigError(
                "the preset domain trains on plain texts in a run of their own; train on the other datasets"
                " first, and then on the texts with that model as --backbone"
            )
        objective = default_objective(of_dataset, facts.kind)
        sections[name] = settings.section(name).model_copy(
            update={"objective": objective}
        )

    sizes = [facts.rows for facts in datasets.values()]
    weights = [settings.section(name).weight for name in datasets]
    passes = epoch_passes(settings.mix, weights, sizes)
    optim = _optim(settings, [*datasets.values()], float(passes @ sizes), dim)
    filled = _fill_unset(settings, {"optim": optim})
    return filled.model_copy(update={"datasets": sections})


def _check_unused(settings: TrainSettings) -> None:
    """Refuse settings for plain texts that a run doesn't use."""
    unused = ["purpose"] if settings.purpose else []
    is_set = settings.teacher.model_fields_set
    unused += [f"teacher.{name}" for name in _OF_PLAIN_TEXTS if name in is_set]
    if unused:
        raise ConfigError(
            f"{', '.join(unused)}: no effect here; expected plain texts as the only dataset, and the preset"
            " domain"
        )


def seeds_in(batch_size: int) -> int:
    """Texts of a batch that bring texts of their neighbourhoods with them."""
    return max(1, batch_size // (1 + FROM_NEIGHBOURHOOD))


def with_domain_preset(settings: TrainSettings) -> TrainSettings:
    """The settings with the preset domain, if plain texts have no other objective or teacher."""
    has_teacher = settings.teacher.model or settings.teacher.scores
    has_weights = "weights" in settings.objective.model_fields_set
    if settings.preset != AUTO or has_teacher or settings.lora or has_weights:
        return settings
    tree = settings.model_dump(exclude_unset=True)
    return TrainSettings.model_validate({**tree, "preset": DOMAIN})


def learns_neighbours(settings: TrainSettings, kind: Kind) -> bool:
    """Whether rows are trained on with their neighbourhoods: single texts, with the preset domain."""
    has_weights = "weights" in settings.objective.model_fields_set
    return kind == "single" and settings.preset == DOMAIN and not has_weights


def depends_on_auc(settings: TrainSettings) -> bool:
    """Whether defaults depend on the backbone's AUC."""
    has_optim = settings.optim.model_fields_set & {"lr", "epochs", "interpolate"}
    has_teacher = settings.teacher.model or settings.teacher.scores
    has_new_weights = settings.lora is not None or settings.encoder.dense
    return not (
        settings.preset == DOMAIN or has_optim or has_teacher or has_new_weights
    )


def epoch_passes(
    mix: MixSettings, weights: Sequence[float], sizes: Sequence[int]
) -> np.ndarray:
    """Passes over each dataset in an epoch, float64 (dataset,)."""
    rows = np.asarray(sizes, np.float64)
    if mix.until == "once":
        return np.ones_like(rows)
    power = -1.0 if mix.order == "round-robin" else 1 / mix.temperature - 1
    passes = np.asarray(weights, np.float64) * rows**power
    limit: float = passes.max() if mix.until == "shortest" else passes.min()
    return passes / limit


def default_objective(settings: TrainSettings, kind: Kind) -> ObjectiveSettings:
    """The objective of `with_defaults`, which doesn't depend on the backbone."""
    return _fill_unset(settings, {"objective": _objective(settings, kind)}).objective


def format_choices(
    settings: TrainSettings, kind: Kind, *, rows: int, seen: int, parts: Iterable[str]
) -> str:
    """One line on the settings of a run that trains `parts` on `seen` rows."""
    optim = settings.optim
    teacher = settings.teacher
    if teacher.smoothing is not None:
        return (
            f"{rows:,} texts learn from their neighbours: smoothing {teacher.smoothing:g} (purpose"
            f" {settings.purpose or 'search'}), learning rate {optim.lr:g}, batches of {optim.batch_size}"
        )
    used = f"{seen:,} of {rows:,}" if seen < rows else f"{rows:,}"
    return (
        f"{used} {kind} rows: {' + '.join(parts)}, learning rate {optim.lr:g},"
        f" {format_epochs(optim.epochs)}, batches of {optim.batch_size}"
    )


def format_decoder_choices(before: TrainSettings, filled: TrainSettings) -> str | None:
    """One line on the changes of `with_decoder_defaults`; None without any."""
    changes = []
    if filled.lora is not None and before.lora is None:
        changes.append(
            f"only adapters of rank {filled.lora.rank} are trained (--no-lora trains all weights)"
        )
    if filled.prompts != before.prompts:
        changes.append(
            f"texts get the prompt {filled.prompts!r} (--prompts '{PLACE}' turns it off)"
        )
    return f"the backbone is a decoder: {', and '.join(changes)}" if changes else None


def unused_lengths_warning(
    settings: TrainSettings, kind: Kind, encoder: EncoderSettings
) -> str | None:
    """Warn if the model's similarity depends on vector lengths, but no loss part trains them."""
    similarity = encoder.similarity_fn_name
    if encoder.normalize or similarity == "cosine":
        return None
    ignores_lengths = RANKED | IN_BATCH
    if kind != "graded":
        ignores_lengths -= {"sbert"}  # its classifier sees whole vectors
    parts = [
        part for part in settings.objective.weights.active if part in ignores_lengths
    ]
    if not parts:
        return None
    return (
        f"this model compares vectors by {similarity}, but {', '.join(parts)} train only their directions,"
        " not their lengths; --set encoder.similarity_fn_name=cosine ignores lengths"
    )


def format_epochs(count: float) -> str:
    """Format a number of epochs."""
    return f"{count:g} epoch{'' if count == 1 else 's'}"


def _optim(
    settings: TrainSettings,
    datasets: Sequence[DatasetFacts],
    epoch_rows: float,
    dim: int,
) -> Tree:
    """Defaults of `optim`; the most careful of those of all datasets."""
    limits = [_lr_and_max_epochs(settings, facts, dim) for facts in datasets]
    lrs, max_epochs = zip(*limits, strict=True)
    epochs = max(round(_ROWS_TO_PROCESS / epoch_rows), 1)
    optim: Tree = {
        "lr": min(lrs),
        "epochs": float(min(epochs, *max_epochs)),
        "batch_size": BATCH_SIZE,
        "average": 1.0,
        "scheduler": "constant_with_warmup",
    }
    if optim["epochs"] > 1:
        optim["average"] = max(_KINDS[facts.kind].average for facts in datasets)
    if any(facts.neighbours for facts in datasets):
        optim |= _neighbours_optim(settings, epoch_rows, dim)
    elif settings.preset == DOMAIN:
        budget = min(facts.domain_budget for facts in datasets)
        optim |= {
            "lr": _LR_DOMAIN,
            "epochs": float(min(budget.rows / epoch_rows, budget.epochs)),
            "batch_size": _BATCH_SIZE_DOMAIN,
            "interpolate": budget.interpolate,
        }
    return optim


def _neighbours_optim(settings: TrainSettings, epoch_rows: float, dim: int) -> Tree:
    """Epochs for a fixed number of steps on plain texts."""
    batch_size = _BATCH_SIZE_NEIGHBOURS
    if "batch_size" in settings.optim.model_fields_set:
        batch_size = settings.optim.batch_size
    # The number of steps is rounded up, so half a step less avoids one step too many.
    steps = _RECIPES[settings.purpose or "search"].steps - 0.5
    epoch_steps = math.ceil(epoch_rows / seeds_in(batch_size))
    return {
        "lr": _LR_DOMAIN / 2 if dim >= _LARGE_DIM else _LR_DOMAIN,
        "epochs": min(steps / epoch_steps, _MAX_EPOCHS_OF_TEXTS),
        "batch_size": batch_size,
    }


def _lr_and_max_epochs(
    settings: TrainSettings, facts: DatasetFacts, dim: int
) -> tuple[float, int]:
    """The largest learning rate and number of epochs that suit one dataset."""
    lr = _KINDS[facts.kind].lr
    max_epochs = _KINDS[facts.kind].max_epochs
    if dim >= _LARGE_DIM:
        lr = min(lr, _LR_LARGE_DIM)
    ranks_right = facts.auc is not None and facts.auc >= RANKED_RIGHT
    if facts.written or ranks_right:  # there is little to learn
        lr = _LR_SMALL
        max_epochs = 1
    if facts.kind == "single":
        if settings.teacher.model is None:
            max_epochs = 1
        else:  # the model, usually a small one, learns only from its teacher and has far to go
            lr = _LR_DISTILL
    if settings.lora is not None:
        lr = _LR_ADAPTERS
    return lr, max_epochs


def _objective(settings: TrainSettings, kind: Kind) -> Tree:
    """Defaults of `objective`."""
    if learns_neighbours(settings, kind):
        return {"weights": {"score_distill": 1}, "score_form": "kl"}
    objective: Tree = {}
    tau = _KINDS[kind].tau
    if tau is not None:
        objective["tau"] = {"cosent": tau, "angle": tau}
    if settings.preset in (AUTO, DOMAIN):
        objective["weights"] = _weights(settings, kind)
    return objective


def _weights(settings: TrainSettings, kind: Kind) -> Tree:
    """The loss parts of a kind of rows, and one that learns from the teacher unless such a part is set."""
    weights: Tree = dict.fromkeys(_KINDS[kind].parts, 1)
    taught_part = None
    if settings.teacher.model is not None:
        taught_part = "embed_distill"
        if kind == "single":
            weights = {}
    elif settings.teacher.scores is not None:
        taught_part = "margin_mse" if kind == "triplet" else "score_distill"
        weights = {}
    if taught_part and not TAUGHT & settings.objective.weights.model_fields_set:
        weights[taught_part] = 1
    return weights


def _fill_unset(settings: TrainSettings, defaults: Tree) -> TrainSettings:
    """The settings with these defaults beneath."""
    tree = settings.model_dump(exclude_unset=True)
    return TrainSettings.model_validate(merged(defaults, tree))
