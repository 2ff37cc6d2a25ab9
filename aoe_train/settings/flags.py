"""Flags of commands, which keyword arguments are named after, and the settings that they stand for."""

from __future__ import annotations

from collections.abc import Mapping

TRAIN: Mapping[str, str] = {
    "preset": "preset",
    "dims": "objective.dims",
    "layers": "objective.layers",
    "top_layers": "optim.top_layers",
    "soup": "optim.soup",
    "keep": "optim.keep",
    "seed": "seed",
    "labels": "data.labels",
    "label_range": "data.label_range",
    "conflicts": "data.conflicts",
    "streaming": "data.streaming",
    "epochs": "optim.epochs",
    "batch_size": "optim.batch_size",
    "lr": "optim.lr",
    "max_length": "encoder.max_length",
    "pooling": "encoder.pooling",
    "prompts": "prompts",
    "precision": "run.precision",
    "guide": "guide.model",
    "teacher": "teacher.model",
    "teacher_scores": "teacher.scores",
}
"""Of `train` and `plan`; keys of `TrainSettings`."""
