"""The trained module: a text model with its objective, or with one that runs the model itself; making both."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from aoe_train.model.backbones.changes import after_layers, count_layers
from aoe_train.model.device import only_callees_compiled, uncompiled
from aoe_train.model.text_model import TextBatch, TextModel
from aoe_train.objectives.labelled_pairs import (
    NO_BATCH_TEACHERS,
    BatchTeachers,
    RowTexts,
)
from aoe_train.objectives.objective import (
    RowLabels,
    check_loss_function,
    checked_parts,
    make_objective,
)
from aoe_train.objectives.objective_checks import TeacherInfo, TeacherSample
from aoe_train.objectives.training_rows import (
    ABSENT,
    Examples,
    Kind,
    TeacherVectors,
    evenly_spread,
)
from aoe_train.training.processes import gather_rows
from aoe_train.training.teachers import similarity_of
from pairkit.base.errors import ConfigError
from pairkit.dataset.labels import score_scale

if TYPE_CHECKING:
    from jaxtyping import Float

    from aoe_train.data.run_data import Sources
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.text_model import OfText, TextLengths, TokenIds
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.build import Dataset

# Texts for the initial map to a teacher's vectors.
_SAMPLE_TEXTS = 2048


class PairModel(nn.Module):
    """A text model with its objective; DistributedDataParallel synchronises only one module's gradients."""

    def __init__(
        self,
        text_model: TextModel,
        objective: nn.Module,
        *,
        chunk: int | None = None,
        dim: int | None = None,
        layers: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.text_model = text_model
        self.objective = objective
        self.chunk = chunk
        self.dim = dim
        self.layers = layers

    @only_callees_compiled
    def forward(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        rows: RowTexts,
        texts: OfText,
        labels: RowLabels = None,
        prompt_lengths: TextLengths | None = None,
        guide: Float[Tensor, "row column guide"] | None = None,
        teacher: Float[Tensor, "row column teacher"] | None = None,
        scores: Float[Tensor, "row other"] | None = None,
        dataset: int | None = None,
    ) -> dict[str, Tensor]:
        """The "loss" and its parts over the rows of all ranks, or with a `TextObjective` over this rank's."""
        if isinstance(self.objective, TextObjective):
            batch = TextBatch(input_ids, lengths, prompt_lengths, texts, rows, labels)
            loss = self.objective(self.text_model, batch)
            parts = loss if isinstance(loss, dict) else {"loss": loss}
            return checked_parts(self.objective, parts)
        vectors = self.embed(input_ids, lengths, prompt_lengths)
        teachers = BatchTeachers(guide, teacher, scores)
        return self._loss(vectors, rows, texts, labels, teachers, dataset)

    def fixed_shape(
        self,
        input_ids: TokenIds,
        sizes: OfText,
        rows: RowTexts,
        texts: OfText,
        labels: RowLabels,
        *,
        longest: int,
    ) -> dict[str, Tensor]:
        """As `forward`, for texts whose `sizes` are only on the device; see `step_graphs`."""
        vectors = self.text_model.fixed_shape(input_ids, sizes, longest)
        return self._loss(vectors, rows, texts, labels)

    @uncompiled  # cheap, and different for each batch and process
    def _loss(
        self,
        vectors: Tensor,
        rows: RowTexts,
        texts: OfText,
        labels: RowLabels,
        batch_teachers: BatchTeachers = NO_BATCH_TEACHERS,
        dataset: int | None = None,
    ) -> dict[str, Tensor]:
        """The objective of the rows of all ranks; an absent text has the vector of an arbitrary one."""
        objective = self.objective
        if dataset is not None:
            objective = cast("nn.ModuleList", objective)[dataset]
        row_texts = texts[rows].masked_fill(rows == ABSENT, ABSENT)
        return objective(  # type: ignore[no-any-return]
            gather_rows(vectors[..., : self.dim][rows]),
            None if labels is None else gather_rows(labels),
            gather_rows(row_texts),
            batch_teachers.map(gather_rows),
        )

    def embed(
        self,
        input_ids: TokenIds,
        lengths: TextLengths,
        prompt_lengths: TextLengths | None = None,
    ) -> Float[Tensor, "text *layer dim"]:
        """One vector per text, or one per text and layer; computed in chunks if a chunk size is set."""
        if self.chunk is None or len(lengths) <= self.chunk:
            return self.text_model(  # type: ignore[no-any-return]
                input_ids, lengths, prompt_lengths, self.layers
            )
        chunks = split_texts(input_ids, lengths, self.chunk, prompt_lengths)
        vectors = [
            checkpoint(self.text_model, *chunk, self.layers, use_reentrant=False)
            for chunk in chunks
        ]
        return torch.cat(vectors)


def split_texts(
    input_ids: TokenIds,
    lengths: TextLengths,
    size: int,
    prompt_lengths: TextLengths | None = None,
) -> Iterator[tuple[TokenIds, TextLengths, TextLengths | None]]:
    """Split a batch of packed texts into batches of `size` texts; the last may be smaller."""
    token = 0
    for text in range(0, len(lengths), size):
        chunk = slice(text, text + size)
        sizes = lengths[chunk]
        tokens = input_ids[token : token + sizes.sum()]
        skipped = None if prompt_lengths is None else prompt_lengths[chunk]
        yield tokens, sizes, skipped
        token += len(tokens)


class TextObjective(nn.Module, ABC):
    """An objective for `train(objective=...)` that runs the model on the texts of a batch itself.

    It can change the tokens, run the model twice, or add a decoder. Its own weights are trained with the
    model. Random numbers must come from torch's generator, so that a resumed run repeats them. It supports a
    single dataset, and no guide, teacher, `dims`, `layers`, `run.chunk` or `run.shard`.
    """

    def begin(self, encoder: Encoder, kind: Kind) -> None:
        """Prepare for an encoder and a kind of rows: binary, graded, positive, triplet or single."""

    @abstractmethod
    def forward(self, model: TextModel, batch: TextBatch) -> Tensor | dict[str, Tensor]:
        """The loss, or a dict of "loss" and detached parts for the log."""

    def save(self, folder: Path) -> None:
        """Write additional files of the model into its folder."""


def check_loss_functions(sources: Sources, settings: TrainSettings) -> None:
    """Refuse invalid losses and unsupported settings before anything is read or loaded."""
    runs_model = False
    for loss in sources.losses.values():
        if isinstance(loss, TextObjective):
            runs_model = True
        else:
            check_loss_function(loss)
    if not runs_model:
        return
    unsupported = {
        "several datasets": sources.several,
        "a guide or teacher": (
            settings.guide.model or settings.teacher.model or settings.teacher.scores
        ),
        "dims and layers": settings.objective.dims or settings.objective.layers,
        "run.chunk": settings.run.chunk,
        "run.shard": settings.run.shard,
    }
    for option, is_set in unsupported.items():
        if is_set:
            raise ConfigError(
                f"objective: a TextObjective doesn't support {option}; leave one of them out"
            )


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
        if sizes != {teacher.dim}:
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
