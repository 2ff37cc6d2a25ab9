"""The objectives of a run's datasets, and the vectors and layers that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from aoe_train.model.backbones.changes import after_layers, count_layers
from aoe_train.objectives.objective import make_objective
from aoe_train.objectives.objective_checks import TeacherInfo, TeacherSample
from aoe_train.objectives.training_rows import (
    ABSENT,
    Examples,
    TeacherVectors,
    evenly_spread,
)
from aoe_train.training.pair_model import TextObjective
from aoe_train.training.teachers import similarity_of
from pairkit.base.errors import ConfigError
from pairkit.dataset.labels import score_scale

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.training.build import Dataset

# Texts for the initial map to a teacher's vectors, or for their principal axes.
_SAMPLE_TEXTS = 2048


def build_objective(
    datasets: Sequence[Dataset], encoder: Encoder, layers: tuple[int, ...]
) -> nn.Module:
    """The objective of a single dataset, or a list of the objectives of several ones."""
    objectives = []
    for dataset in datasets:
        try:
            objectives.append(_objective_of(dataset, encoder, layers))
        except ConfigError as error:
            if len(datasets) == 1:
                raise
            raise ConfigError(f"dataset {dataset.name}: {error}") from error
    return nn.ModuleList(objectives) if len(objectives) > 1 else objectives[0]


def return_layers(encoder: Encoder, datasets: Sequence[Dataset]) -> tuple[int, ...]:
    """Let the text model return the earlier layers to train, and return their numbers.

    Raises ConfigError if datasets request different layers, or the backbone doesn't have them.
    """
    requested, *different = {dataset.settings.objective.layers for dataset in datasets}
    if different:
        raise ConfigError(
            "objective.layers: differs between datasets, which share one model; set it for the run, not in"
            " datasets.NAME"
        )
    if not requested:
        return ()
    backbone = encoder.model.backbone
    depth = count_layers(backbone)
    layers = tuple(range(1, depth)) if requested == "all" else requested
    if not layers or max(layers) >= depth:
        raise ConfigError(
            f"objective.layers {', '.join(map(str, layers)) or 'all'}: this backbone has {depth} layers;"
            " expected numbers below that, as the last layer is always trained"
        )
    encoder.model.set_final_norm(after_layers(backbone))
    return layers


def _objective_of(
    dataset: Dataset, encoder: Encoder, layers: tuple[int, ...]
) -> nn.Module:
    """The objective of a dataset."""
    examples = dataset.examples
    settings = dataset.settings
    if isinstance(dataset.custom_loss, TextObjective):
        # The initial weights of the loss must not change the run's dropout.
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            dataset.custom_loss.begin(encoder, examples.kind)
        return dataset.custom_loss.train()
    label_range = None
    if examples.labels is not None:
        label_range = score_scale(
            float(examples.labels.min()), float(examples.labels.max())
        )
    return make_objective(
        settings.objective,
        dim=encoder.dim,
        kind=examples.kind,
        label_range=label_range,
        custom_loss=dataset.custom_loss,
        teachers=_teacher_info(dataset, encoder),
        layers=layers,
    )


def _teacher_info(dataset: Dataset, encoder: Encoder) -> TeacherInfo:
    """Information about guide and teacher for the objective."""
    teacher_outputs = dataset.teacher_outputs
    teacher = teacher_outputs.vectors.get("teacher")
    objective = dataset.settings.objective
    sample = None
    if teacher is not None and "embed_distill" in objective.weights.active:
        sizes = {encoder.dim, *objective.dims}
        if sizes != {teacher.dim} or objective.projection == "principal":
            sample = _teacher_sample(encoder, teacher, dataset.examples)
    return TeacherInfo(
        guide="guide" in teacher_outputs.vectors,
        teacher_dim=None if teacher is None else teacher.dim,
        scores=teacher_outputs.scores is not None,
        dot=similarity_of(encoder.settings) == "dot",
        sample=sample,
    )


def _teacher_sample(
    encoder: Encoder, teacher: TeacherVectors, examples: Examples
) -> TeacherSample:
    """Vectors of some texts by both models, evenly spread over the rows."""
    columns = examples.rows.shape[1]
    rows = evenly_spread(len(examples), math.ceil(_SAMPLE_TEXTS / columns))
    present = examples.rows[rows] != ABSENT
    texts = examples.rows[rows][present].tolist()
    prompts = examples.prompts
    if not isinstance(prompts, str):
        prompts = [prompts[text] for text in texts]
    vectors = encoder.encode(
        [examples.texts[text] for text in texts], prompt=prompts, normalize=False
    )
    targets = teacher.of_rows(rows)[:, :columns]
    return TeacherSample(torch.from_numpy(vectors), targets[torch.from_numpy(present)])
