"""What `aoe train` takes where nothing is given: by the kind of the rows, their number, and the backbone.

| rows | parts, of weight 1 | learning rate | epochs |
|---|---|---|---|
| binary or graded pairs | cosine, ibn, angle | 5e-5 | as many as show 16,000 rows, 1 to 3 |
| triplets | contrastive, angle | 5e-5 | the same |
| positives | contrastive | 2e-5 | as many as show 16,000 rows, 1 to 8 |
| single texts | contrastive: unsupervised SimCSE | 1e-5 | 1 |
| single texts with a teacher | embed_distill | 3e-4 | as of positives |
| others with a teacher | as above, and embed_distill | as above | as above |
| with a teacher's scores alone | triplets: margin_mse; pairs: score_distill | as above | as above |
| a dataset of `label`, of any kind | as above | 5e-6 | 1 |
| pairs of labels 0 and 1 that the backbone ranks right already | as above | 5e-6 | 1 |
| any, with the preset `domain` | as above, contrastive both ways | 1e-4 | 12 steps of 32 rows, 1 at most |
| the same, with `data.author` people | as above | 1e-4 | 36 steps of 32 rows, 2 at most |

Batches have 16 rows, the mean of the weights over the run is kept, at a constant learning rate, and labelled
pairs are ranked with similarities divided by 0.2 if they are graded, else by 0.05. For embeddings of 768 and
more the learning rate is 2e-5 at most; adapters (`--lora`) take 3e-4. A decoder that is no encoder yet is
trained by adapters, and each text stands in the papers' prompt. Values were chosen on dev data by
`benchmarks/aoe_defaults.py`:

- At the papers' 0.05 a ranking loss cares about the pairs alone that are nearest to being in the wrong order.
  With two labels these are what there is to learn; with scores a backbone that is good already ends where it
  began.
- The mean of the weights is steadier than the last ones, and needs no dev data to say when to stop.
- Of few labelled pairs a backbone learns nothing more after three epochs, and forgets what it knew; of
  triplets it learns a little more, and forgets more than that.
- A decoder's vector is that of the last token, where it is about to write the next word. Asked for a word
  that sums the text up, it has the text's meaning there; without a prompt, whatever may follow the text.
- What LLMs or rules wrote is soon told apart by how they write. Steps as large as for people's labels then
  cost what the backbone knew: 14 points of STS-B in three epochs.
- Of pairs that the backbone ranks right already, an AUC of 98 or more on up to 1,000 of them, there is
  nothing to learn, and it forgets. MiniLM's AUC on RQE's test set is 89.3. After 250 rows of RQE's training
  set (AUC 99.2 to 100 before training) it was 87.2 to 88.0 with the values of binary pairs, and 89.2 to
  89.4 with these; after 1,000 rows 87.4, and 89.1. Pairs of banking77, and titles of bug reports with random
  negatives, had 93 to 96 before training.
- The preset `domain` takes 36 steps and keeps all of them on triplets that people wrote by hand. On pairs of
  people with mined negatives 36 steps are worse than 12 mixed at 0.7 in each of three domains, so that they
  are taken on request only. In the first person, a denied sentence still makes the same request ("my card
  does not work"): on banking77 such triplets of rules cost MiniLM 2 points of P@1, so the backbone is kept.

The papers' own values are the presets that end in `-paper`. They leave nothing to choose.

A run on several datasets has an objective for each, by its rows, and for the rest the most careful of what
each would have: the lowest learning rate and the fewest epochs, which are counted over the rows of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from aoe_train.objectives.settings import IN_BATCH, RANKED, TAUGHT, ObjectiveSettings
from aoe_train.records import Kind
from aoe_train.settings.prompts import PLACE
from aoe_train.settings.training import (
    AUTO,
    DOMAIN,
    PAPERS,
    Author,
    EncoderSettings,
    MixSettings,
    TrainSettings,
    Tree,
    merged,
)

_WEIGHTS: Mapping[Kind, Tree] = {
    "binary": {"cosine": 1, "ibn": 1, "angle": 1},
    "graded": {"cosine": 1, "ibn": 1, "angle": 1},
    "triplet": {"contrastive": 1, "angle": 1},
    "positive": {"contrastive": 1},
    "single": {"contrastive": 1},
}
_TAU: Mapping[Kind, Tree] = {
    "binary": {"cosine": 0.05, "angle": 0.05},
    "graded": {"cosine": 0.2, "angle": 0.2},
}
_LR: Mapping[Kind, float] = {
    "binary": 5e-5,
    "graded": 5e-5,
    "triplet": 5e-5,
    "positive": 2e-5,
    "single": 1e-5,
}
_TAUGHT: Tree = {"embed_distill": 1}
_LR_WIDE, _LR_GENTLE, _LR_ADAPTERS, _LR_TAUGHT = 2e-5, 5e-6, 3e-4, 3e-4
# The papers' for LLaMA.
_PROMPT = f"Summarize sentence {PLACE} in one word:"
_WIDE = 768  # the embedding of a BERT-base
_LAST = "auto", "last"  # poolings of a decoder by its last token
_BATCH, _SEEN = 16, 16_000
_MOST_EPOCHS: Mapping[Kind, int] = {"binary": 3, "graded": 3, "triplet": 3, "positive": 8, "single": 8}
RANKED_RIGHT = 0.98  # the AUC of a backbone that has nothing to learn of its pairs
_FIRST_PERSON = re.compile(r"\b(?:I|i|[Mm]y|[Mm]e|[Ww]e|[Oo]ur)\b")
FIRST_PERSON_SHARE = 0.5  # from which share of the anchors on rules' negatives do harm


class _Budget(NamedTuple):
    """How far the preset domain trains: rows seen in all, epochs at most, weight of the trained model."""

    rows: int
    epochs: int
    weight_mix: float


_GENTLE_BUDGET = _Budget(384, 1, 0.7)
_FULL_BUDGET = _Budget(1152, 2, 1.0)
_NO_BUDGET = _GENTLE_BUDGET._replace(weight_mix=0.0)


class DatasetFacts(NamedTuple):
    """What defaults depend on.

    `written` are pairs that LLMs or rules wrote, by `author` if known. `auc` is how well the backbone ranks
    pairs before training, `first_person` the share of anchors in the first person.
    """

    kind: Kind
    rows: int
    written: bool = False
    auc: float | None = None
    author: Author | None = None
    first_person: float = 0.0

    @property
    def gentle(self) -> bool:
        """Whether there is so little to learn that small steps, each row once, keep what a model can do."""
        return self.written or (self.auc is not None and self.auc >= RANKED_RIGHT)

    @property
    def unsuited(self) -> bool:
        """Whether rules wrote triplets of requests, which a negation leaves the same."""
        return self.author == "rules" and self.kind == "triplet" and self.first_person >= FIRST_PERSON_SHARE

    @property
    def domain_budget(self) -> _Budget:
        """How far the preset domain trains on these rows."""
        if self.unsuited:
            return _NO_BUDGET
        return _FULL_BUDGET if self.author == "people" else _GENTLE_BUDGET


UNSUITED = (
    "warning: rules wrote these triplets of texts in the first person, where a denial is still the same"
    " request; they would make the model worse, so the backbone's weights are kept (--weight-mix 0.7 takes"
    " what was learnt)"
)


def first_person_share(texts: Sequence[str]) -> float:
    """Share of the texts in the first person (English)."""
    return sum(_FIRST_PERSON.search(text) is not None for text in texts) / max(len(texts), 1)


def with_decoder_defaults(settings: TrainSettings) -> TrainSettings:
    """The settings given, over what suits a decoder that is no encoder yet; before its weights are read."""
    if settings.preset.endswith(PAPERS):
        return settings
    found: dict[str, Any] = {}
    if "lora" not in settings.model_fields_set and settings.optim.top_layers is None:
        found["lora"] = {}
    if not (settings.prompts or settings.encoder.prompts) and settings.encoder.pooling in _LAST:
        found["prompts"] = _PROMPT
    return _over(settings, found)


def with_defaults(settings: TrainSettings, facts: DatasetFacts, *, dim: int) -> TrainSettings:
    """The settings given, over what suits the rows and the backbone."""
    optim = _optim(settings, [facts], facts.rows, dim)
    return _over(settings, {"objective": _objective(settings, facts.kind), "optim": optim})


def with_defaults_for_all(
    settings: TrainSettings, datasets: Mapping[str, DatasetFacts], *, dim: int
) -> TrainSettings:
    """The same for several datasets by name: each has its objective in its own section then."""
    numbers = [facts.rows for facts in datasets.values()]
    seen = float(np.dot(epoch_passes(settings.mix, dataset_weights(settings, datasets), numbers), numbers))
    made = _over(settings, {"optim": _optim(settings, datasets.values(), seen, dim)})
    own = {
        name: settings.section(name).model_copy(
            update={"objective": default_objective(settings.of(name), facts.kind)}
        )
        for name, facts in datasets.items()
    }
    return made.model_copy(update={"datasets": {**settings.datasets, **own}})


def depends_on_auc(settings: TrainSettings) -> bool:
    """Whether it matters how well the backbone ranks pairs: nobody gave how far to train it."""
    given = settings.optim.model_fields_set & {"lr", "epochs", "weight_mix"}
    beside = settings.lora is not None or settings.encoder.dense or settings.teacher.model
    return not (given or beside or settings.teacher.scores)


def dataset_weights(settings: TrainSettings, names: Iterable[str]) -> list[float]:
    """How often rows of each dataset are seen, against those of the others."""
    return [settings.section(name).weight for name in names]


def epoch_passes(mix: MixSettings, weights: Sequence[float], sizes: Sequence[int]) -> np.ndarray:
    """How often an epoch goes through each dataset, float64 (dataset,)."""
    number = np.asarray(sizes, np.float64)
    if mix.until == "once":
        return np.ones_like(number)
    power = -1.0 if mix.order == "round-robin" else 1 / mix.temperature - 1
    found = np.asarray(weights, np.float64) * number**power
    limit: float = found.max() if mix.until == "shortest" else found.min()
    return found / limit


def default_objective(settings: TrainSettings, kind: Kind) -> ObjectiveSettings:
    """The objective of `with_defaults`, which does not depend on the backbone."""
    return _over(settings, {"objective": _objective(settings, kind)}).objective


def format_choices(settings: TrainSettings, kind: Kind, *, rows: int, seen: int, parts: Iterable[str]) -> str:
    """One line on what was chosen for a run that learns from `parts` and sees `seen` rows in all."""
    optim = settings.optim
    used = f"{seen:,} of {rows:,}" if seen < rows else f"{rows:,}"
    return (
        f"{used} {kind} rows: {' + '.join(parts)}, learning rate {optim.lr:g},"
        f" {format_epochs(optim.epochs)}, batches of {optim.batch_size}"
    )


def format_decoder_choices(given: TrainSettings, made: TrainSettings) -> str | None:
    """One line on what `with_decoder_defaults` changed; None if nothing."""
    found = []
    if made.lora is not None and given.lora is None:
        found.append(f"adapters of rank {made.lora.rank} learn (--no-lora: all weights)")
    if made.prompts != given.prompts:
        found.append(f"each text stands in {made.prompts!r} (--prompts '{PLACE}': bare)")
    return f"a decoder: {', and '.join(found)}" if found else None


def unused_lengths_warning(settings: TrainSettings, kind: Kind, encoder: EncoderSettings) -> str | None:
    """Warn of a model that compares vectors by more than their directions, which is all that is trained.

    The parts that learn from pairs compare directions. Those that learn from a teacher follow the model.
    """
    measure = encoder.similarity_fn_name
    if encoder.normalize or measure == "cosine":
        return None
    parts = [part for part in settings.objective.weights.wanted if part in RANKED | IN_BATCH]
    if kind != "graded":  # SBERT tells classes by whole vectors
        parts = [part for part in parts if part != "sbert"]
    if not parts:
        return None
    return (
        f"this model compares vectors by {measure}, but {', '.join(parts)} train their directions alone and"
        " leave their lengths to chance; --set encoder.similarity_fn_name=cosine compares by what is trained"
    )


def format_epochs(count: float) -> str:
    """A number of epochs, in words."""
    return f"{count:g} epoch{'' if count == 1 else 's'}"


def _lr(kind: Kind, dim: int, *, adapters: bool, gentle: bool, taught: bool) -> float:
    if adapters:
        return _LR_ADAPTERS
    if taught:  # a small model, most often, that has far to go
        return _LR_TAUGHT
    if gentle:
        return _LR_GENTLE
    return min(_LR[kind], _LR_WIDE) if dim >= _WIDE else _LR[kind]


def _optim(settings: TrainSettings, datasets: Iterable[DatasetFacts], seen: float, dim: int) -> Tree:
    """What is chosen of `optim`; `seen` are the rows of an epoch."""
    each = list(datasets)
    adapters = settings.lora is not None
    has_teacher = settings.teacher.model is not None
    taught = {facts: facts.kind == "single" and has_teacher for facts in each}
    once = any(facts.gentle or (facts.kind == "single" and not taught[facts]) for facts in each)
    most = min(_MOST_EPOCHS[facts.kind] for facts in each)
    times: float = 1 if once else min(max(round(_SEEN / seen), 1), most)
    domain: Tree = {}
    if settings.preset == DOMAIN:
        least = min(facts.domain_budget for facts in each)
        times = min(least.rows / seen, least.epochs)
        domain = {"weight_mix": least.weight_mix}
    lr = min(
        _lr(facts.kind, dim, adapters=adapters, gentle=facts.gentle, taught=taught[facts]) for facts in each
    )
    return {
        "lr": lr,
        "epochs": float(times),
        "batch_size": _BATCH,
        "average": 1.0,
        "scheduler": "constant_with_warmup",
        **domain,
    }


def _objective(settings: TrainSettings, kind: Kind) -> Tree:
    tau = {"tau": _TAU[kind]} if kind in _TAU else {}
    return tau | ({"weights": _weights(settings, kind)} if settings.preset in (AUTO, DOMAIN) else {})


def _weights(settings: TrainSettings, kind: Kind) -> Tree:
    teacher, named = settings.teacher, TAUGHT & settings.objective.weights.model_fields_set
    if teacher.model is None and teacher.scores is None:
        return _WEIGHTS[kind]
    if teacher.model is None:
        return {} if named else {"margin_mse" if kind == "triplet" else "score_distill": 1}
    own = {} if kind == "single" else _WEIGHTS[kind]
    return own if named else {**own, **_TAUGHT}


def _over(settings: TrainSettings, below: Tree) -> TrainSettings:
    given: dict[str, Any] = settings.model_dump(exclude_unset=True)
    return TrainSettings.model_validate(merged(below, given))
