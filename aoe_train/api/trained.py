"""What `train` and `plan` return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.app.result_table import Printed, ResultTable

if TYPE_CHECKING:
    from aoe_train.evaluation.gain import Gain
    from aoe_train.model.encoder import Encoder

_KEPT = (
    "kept the backbone: the model was not shown to be better than it, so its weights were saved instead (to"
    " keep the model's, give --if-not-better model)"
)

JUDGE_ALL = ("--yes-no", "--n", "400")


def compare(model: str, other: str, judged: str) -> list[str]:
    """The command that compares two models on judged pairs."""
    return ["aoe", "evaluate", "--model", model, "--against", other, "--data", f"{judged}.review"]


@dataclass(frozen=True, repr=False)
class Trained:
    """A finished run of `train`.

    Attributes:
        out: The model's folder.
        record: What run.json holds: settings, hashes of the inputs, history, versions.
        is_main: Whether this process wrote the folder; under torchrun only one does.
    """

    out: Path
    record: Mapping[str, Any]
    is_main: bool = True

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return int(self.record["result"]["steps"])

    @property
    def pairs(self) -> int:
        """Rows that were trained on, including repeats."""
        return int(self.record["result"]["pairs"])

    @property
    def seconds(self) -> float:
        """Time of the training steps only."""
        return float(self.record["result"]["seconds"])

    @property
    def dev(self) -> float | None:
        """The best figure on held-out rows; None without such rows."""
        found: float | None = self.record["result"]["dev"]
        return found

    @property
    def dev_before(self) -> float | None:
        """The same figure before training."""
        found: float | None = self.record["result"]["dev_before"]
        return found

    @property
    def dev_metric(self) -> str | None:
        """The metric: `spearman`, `triplet_accuracy` or `mrr`; `mean` if there are several dev sets."""
        found: str | None = self.record["result"]["dev_metric"]
        return found

    @property
    def dev_sets(self) -> dict[str, dict[str, Any]]:
        """Each of several dev sets: its `metric`, and the figure `before` training and now (`dev`)."""
        return dict(self.record["result"].get("dev_sets", {}))

    @property
    def gain(self) -> Gain | None:
        """The gain of the trained weights over the backbone's on judged pairs; None without such pairs."""
        from aoe_train.evaluation.gain import Gain

        told = self.record["result"].get("judged")
        return None if told is None else Gain.of(told)

    @property
    def kept(self) -> str:
        """Whose weights were saved: those of the `model`, or of the `backbone`, see `train(accept_on=…)`."""
        return str(self.record["result"].get("judged", {}).get("kept", "model"))

    @property
    def history(self) -> list[dict[str, Any]]:
        """Log entries by step: `loss` and its parts, and `eval_dev` of each evaluation.

        With several datasets and dev sets also those of each by name: `nli.loss`, `eval_dev.nli`.
        """
        entries = [*self.record["history"], *self.record["dev_history"]]
        return sorted(entries, key=lambda entry: entry["step"])

    @cached_property
    def encoder(self) -> Encoder:
        """The trained model, loaded when it is first asked for."""
        from aoe_train.model.encoder import Encoder

        return Encoder.load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe train --json`."""
        names = ("out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb")
        found = {name: self.record["result"][name] for name in (*names, "dev", "dev_metric", "dev_before")}
        judged = self.record["result"].get("judged")
        found |= {} if judged is None else {"judged": judged}
        ahead = self.record["result"].get("dev_gain")
        found |= {} if ahead is None else {"dev_gain": ahead}
        return found | ({"dev_sets": self.dev_sets} if self.dev_sets else {})

    def tables(self) -> list[str]:
        """The model's folder."""
        return [str(self.out)]

    def notes(self) -> Iterator[str]:
        """Rows, speed, and figures before and after training."""
        from aoe_train.evaluation.gain import TOO_FEW

        speed = f"{self.seconds:,.1f} s of training ({self.pairs / self.seconds:,.1f} a second)"
        whole = self.record["rows"]["train"]
        rows = f"{self.pairs:,}" + (f" of {whole:,}" if self.pairs < whole else "")
        yield f"{self.steps:,} steps over {rows} rows in {speed}"
        if self.dev is not None and self.dev_before is not None:
            ahead, few = self.record["result"].get("dev_gain"), False
            gained = f"{self.dev_metric} on dev data: {self.dev:.4f}, before {self.dev_before:.4f}"
            if ahead is not None:
                low, high = ahead["ci95"]
                few = ahead["too_few"] and low <= 0 <= high
                gained += f" ({ahead['difference']:+.4f} [{low:.4f}, {high:.4f}], {ahead['rows']:,} rows"
                gained += f": {TOO_FEW})" if few else ")"
            yield gained
            for name, dev in self.dev_sets.items():
                now = "" if dev["dev"] is None else f"{dev['dev']:.4f}, before "
                yield f"  {name}: {dev['metric']} {now}{dev['before']:.4f}"
            if self.dev <= self.dev_before and not few:
                yield "no better than before training: try a lower --lr or another --preset"
        if self.gain is not None:
            yield f"judged pairs: {self.gain}"
            if self.kept == "backbone":
                yield _KEPT
        elif self.dev is None:
            yield "not shown to be better than its backbone; give --accept-on PAIRS"

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to evaluate it; after the preset domain, by pairs that people judge."""
        if self.record["origin"]["settings"]["preset"] == "domain" and self.gain is None:
            model, backbone = str(self.out), str(self.record["sources"]["backbone"])
            draw = ["--model", model, "--model", backbone, "--out", "to-judge"]
            return [
                ("sample pairs of your own texts", ["aoe", "sample", "--data", "sentences.txt", *draw]),
                (
                    "judge them: 400 judged pairs show a gain of 1 point of AUC in 7 of 10 cases",
                    ["pairs", "review", "to-judge", *JUDGE_ALL],
                ),
                ("compare the model with its backbone", compare(model, backbone, "to-judge")),
            ]
        data = self.record["sources"]["data"]
        first = data if isinstance(data, str) else next(iter(data.values()))
        return [("evaluate it", ["aoe", "evaluate", "--model", str(self.out), "--data", str(first)])]

    def __repr__(self) -> str:
        told = [
            f"{str(self.out)!r}",
            f"{self.steps:,} steps",
            f"{self.pairs:,} rows",
            f"{self.seconds:,.1f} s",
        ]
        if self.dev is not None:
            told.append(f"{self.dev_metric} {self.dev:.4f} (before {self.dev_before:.4f})")
        if self.gain is not None:
            told.append(f"judged pairs: {self.gain}; kept: {self.kept}")
        return f"Trained({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class Plan(Printed):
    """What a run of `train` would take: counts, batches, memory and time.

    Attributes:
        record: What the JSON of `aoe train --dry-run --json` holds.
    """

    record: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """How long the training steps would take, by a short probe."""
        return float(self.record["seconds"])

    @property
    def memory_mb(self) -> float:
        """MiB of weights, gradients, optimiser and activations."""
        return float(sum(self.record["memory_mb"].values()))

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe train --dry-run --json`."""
        return dict(self.record)

    def table(self) -> ResultTable:
        """The estimate as readable lines."""
        from aoe_train.training.plan import plan_table

        return plan_table(self.record)

    def next_steps(self) -> list[tuple[str, str]]:
        """The command that starts the training."""
        return [("train", "the same command without --dry-run")]
