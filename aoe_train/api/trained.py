"""The result of `train`, and commands that evaluate the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import spoken_notes

if TYPE_CHECKING:
    from aoe_train.evaluation.gain import Gain
    from aoe_train.model.encoder import Encoder
    from aoe_train.training.train import RunRecord

_KEPT_BACKBONE = (
    "kept the backbone: the model was not shown to be better, so the backbone's weights were saved"
    " (--if-not-better=model saves the model's)"
)


def judge_command(folder: str, purpose: str | None) -> list[str]:
    """The command that asks people about all sampled pairs, by the purpose of the model."""
    from pairkit.reviews.review_sample import SEARCH

    # The question of the purpose match is the default of `pairs review`.
    questions = {
        "group": "Do both texts belong to the same topic or intent?",
        "search": SEARCH,
    }
    command = ["pairs", "review", folder, "--no-grades", "--n", "400"]
    if purpose in questions:
        command += ["--question", questions[purpose]]
    return command


def compare_command(model: str, other: str, data: str) -> list[str]:
    """The command that compares two models."""
    models = ["--model", model, "--against", other]
    return ["aoe", "evaluate", *models, "--data", data]


@dataclass(frozen=True, repr=False)
class Trained(CommandResult):
    """A finished run of `train`.

    Attributes:
        out: The model's folder.
        record: The contents of run.json: settings, hashes of the inputs, history, versions.
        is_main: Whether this process wrote the folder; under torchrun, only rank 0 does.
    """

    out: Path
    record: Mapping[str, Any]
    is_main: bool = True

    @cached_property
    def _run(self) -> RunRecord:
        from aoe_train.training.train import RunRecord

        return RunRecord.model_validate(self.record)

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return self._run.result.steps

    @property
    def pairs(self) -> int:
        """Number of training rows seen, including repeats."""
        return self._run.result.pairs

    @property
    def seconds(self) -> float:
        """Duration of the training steps only."""
        return self._run.result.seconds

    @property
    def dev(self) -> float | None:
        """The best dev score; None without dev data."""
        return self._run.result.dev

    @property
    def dev_before(self) -> float | None:
        """The dev score before training."""
        return self._run.result.dev_before

    @property
    def dev_metric(self) -> str | None:
        """The dev metric: `spearman`, `triplet_accuracy` or `mrr`; `mean` of several dev sets."""
        return self._run.result.dev_metric

    @property
    def dev_sets(self) -> dict[str, dict[str, Any]]:
        """For each of several dev sets: `metric`, score `before` training, and best score (`dev`)."""
        return {
            name: dev.model_dump() for name, dev in self._run.result.dev_sets.items()
        }

    @property
    def gain(self) -> Gain | None:
        """The model's gain over its backbone on judged pairs; None without such pairs."""
        return self._run.result.gain

    @property
    def kept(self) -> str:
        """The saved weights: `model` or `backbone`; see `train(accept_on=…)`."""
        return self._run.result.kept

    @property
    def history(self) -> list[dict[str, Any]]:
        """Log entries in order of steps: `loss` and its parts, and `eval_dev` of each evaluation.

        With several datasets or dev sets, also each one's by name: `nli.loss`, `eval_dev.nli`.
        """
        entries = [*self._run.history, *self._run.dev_history]
        return sorted(entries, key=lambda entry: entry["step"])

    @cached_property
    def encoder(self) -> Encoder:
        """The trained model, loaded on first use."""
        from aoe_train.model.encoder import Encoder

        return Encoder.load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `aoe train --json`."""
        result = self.record["result"]
        always = ["out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb"]
        always += ["dev", "dev_metric", "dev_before"]
        optional = [
            name for name in ("judged", "dev_gain", "dev_sets") if result.get(name)
        ]
        return {name: result[name] for name in always + optional}

    def tables(self) -> list[str]:
        """The model's folder."""
        return [str(self.out)]

    @spoken_notes
    def notes(self) -> Iterator[str]:
        """Rows, speed, and scores before and after training."""
        rate = self._run.result.pairs_per_s
        speed = f"{self.seconds:,.1f} s of training ({rate:,.1f} a second)"
        total = sum(dataset.rows for dataset in self._run.datasets.values())
        rows = f"{self.pairs:,}" + (f" of {total:,}" if self.pairs < total else "")
        yield f"{self.steps:,} steps over {rows} rows in {speed}"
        if self.dev is not None and self.dev_before is not None:
            yield from self._dev_notes(self.dev, self.dev_before)
        if self.gain is not None:
            yield f"judged pairs: {self.gain}"
            if self.kept == "backbone":
                yield _KEPT_BACKBONE
        elif self.dev is None:
            yield "not shown to be better than its backbone; give --accept-on PAIRS"

    def _dev_notes(self, dev: float, before: float) -> Iterator[str]:
        from aoe_train.evaluation.gain import TOO_FEW

        gain = self._run.result.dev_gain
        too_few = False
        measured_on = "" if self._run.has_own_metric else " on dev data"
        line = f"{self.dev_metric}{measured_on}: {dev:.4f}, before {before:.4f}"
        if gain is not None:
            low, high = gain["ci95"]
            too_few = gain["too_few"] and low <= 0 <= high
            line += f" ({gain['difference']:+.4f} [{low:.4f}, {high:.4f}], {gain['rows']:,} rows"
            line += f": {TOO_FEW})" if too_few else ")"
        yield line
        for name, each in self._run.result.dev_sets.items():
            now = "" if each.dev is None else f"{each.dev:.4f}, "
            yield f"  {name}: {each.metric} {now}before {each.before:.4f}"
        if dev <= before and not too_few:
            yield "no better than before training: try a lower --lr or another --preset"

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """Commands that evaluate the model, by judged pairs if it was trained on texts.

        Empty if the weights are the backbone's, the gain is known, or a file of
        rows without dev data was trained on.
        """
        run = self._run
        settings = run.origin["settings"]
        is_backbone = settings["optim"]["interpolate"] == 0
        if self.gain is not None or is_backbone:
            return []
        held_out = run.sources.dev_data
        name, data = next(iter(run.sources.data.items()))
        has_single_texts = run.datasets[name].kind == "single"
        has_texts = settings["preset"] == "domain" or has_single_texts
        if has_texts and not held_out:
            return self._review_steps(data, has_single_texts=has_single_texts)
        if not held_out and Path(data).is_file():
            return []  # there is no verdict on training rows
        rows = next(iter(held_out.values()), data)
        step = compare_command(str(self.out), run.sources.backbone, rows)
        return [("evaluate it against the backbone", step)]

    def _review_steps(
        self, data: str, *, has_single_texts: bool
    ) -> list[tuple[str, list[str]]]:
        """Commands that sample pairs of the training texts, have them judged, and evaluate."""
        model = str(self.out)
        backbone = self._run.sources.backbone
        sample = ["aoe", "sample-pairs", "--data", data]
        if not has_single_texts:
            sample += ["--columns", "text=anchor"]
        sample += ["--model", model, "--model", backbone, "--out", "to-judge"]
        purpose = self._run.origin["settings"]["purpose"]
        if purpose is not None:
            sample += ["--purpose", purpose]
        return [
            ("sample pairs of your own texts", sample),
            (
                "judge them; 400 pairs usually show a gain of 1.2 points of AUC",
                judge_command("to-judge", purpose),
            ),
            (
                "compare the model with its backbone",
                compare_command(model, backbone, "to-judge.review"),
            ),
        ]

    def __repr__(self) -> str:
        parts = [f"{str(self.out)!r}", f"{self.steps:,} steps", f"{self.pairs:,} rows"]
        parts.append(f"{self.seconds:,.1f} s")
        if self.dev is not None:
            parts.append(
                f"{self.dev_metric} {self.dev:.4f} (before {self.dev_before:.4f})"
            )
        if self.gain is not None:
            parts.append(f"judged pairs: {self.gain}; kept: {self.kept}")
        return f"Trained({', '.join(parts)})"
