"""transformers' Trainer, taught the few things it does not do for pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainingArguments

from aoe_train.data.conflicts import Say, silent
from aoe_train.model.packing.transfer import upload_batch
from aoe_train.training.trainer.checkpoints import (
    Checkpoint,
    check_state_files,
    checkpoint_folder,
    newest_checkpoint,
    restore_weights,
    trained_weights,
    write_extras,
)
from aoe_train.training.trainer.divergence import Diverged, gradient_problem
from aoe_train.training.trainer.gather import is_distributed
from aoe_train.training.trainer.loss_log import LossLog
from aoe_train.training.trainer.reports import Reports, new_name
from aoe_train.training.trainer.sharding import (
    check_support,
    copy_weights,
    gather_weights,
    is_sharded,
    load_optimiser,
    save_optimiser,
    shard_like,
    unshard,
    unsharded_root,
)
from aoe_train.training.trainer.stopwatch import Stopwatch

if TYPE_CHECKING:
    from torch.utils.data import DataLoader
    from transformers import TrainerCallback
    from transformers.trainer_utils import TrainOutput

    from aoe_train.training.trainer.average import WeightAverage
    from aoe_train.training.trainer.divergence import CollapseCheck
    from aoe_train.training.trainer.pair_model import PairModel

Evaluate = Callable[[], Sequence[float]]
METRIC = "dev"
_WEIGHTS = "model.safetensors"


class PairTrainer(Trainer):
    """Trains a PairModel on batches that are already planned, and remembers the best weights.

    What `average` says is evaluated and kept, such as the mean of the weights so far.

    What differs from Trainer:

    * Batches come from the plan as they are. Accelerate would share them out among the ranks once more, and
      its look-ahead draws random numbers that a resumed run would draw twice.
    * A run that has diverged ends (`divergence`), where Trainer leaves losses that are no numbers out of the
      log.
    * Evaluation calls `evaluate_dev` on rank 0 and tells the others. It gives a figure for each of `dev_sets`
      after the one that chooses the best weights.
    * The log has the parts of each of `datasets` under its name, where there are several.
    * The best weights are kept (whole ones in host memory) and written with each checkpoint. So evaluating
      costs no writing, and one folder holds all that a killed run needs.
    * A checkpoint holds the weights that learn and is whole or absent. It is the same for a model that is
      shared out (`sharding.shard`), which is evaluated by all ranks together.
    * Time spent on evaluation and checkpoints is not counted as training.
    """

    def __init__(
        self,
        model: PairModel,
        args: TrainingArguments,
        batches: DataLoader[Any],
        *,
        work: Path,
        evaluate_dev: Evaluate | None = None,
        dev_sets: Sequence[str] = (),
        datasets: Sequence[str] = (),
        average: WeightAverage,
        collapse: CollapseCheck,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        model.is_distributed_loading_by_transformers = is_sharded(model)
        # Trainer insists on a dataset to evaluate; it only has to be there.
        dev = torch.utils.data.TensorDataset() if evaluate_dev else None
        super().__init__(
            model=model,
            args=args,
            train_dataset=batches.dataset,
            eval_dataset=dev,
            callbacks=[average, *callbacks],
        )
        if is_sharded(model):
            check_support(self)
        self.remove_callback(PrinterCallback)  # it prints to stdout
        self.reports = Reports(self.callback_handler.callbacks, args, work)
        self.name = new_name(work)
        self.pair_model = model
        self.batches = batches
        self.work = work
        self.evaluate_dev = evaluate_dev
        self.dev_figures = [METRIC, *(f"{METRIC}.{name}" for name in dev_sets)]
        self.datasets = datasets
        self.average = average
        self.collapse = collapse
        self.losses = LossLog(args.learning_rate)
        self.best: dict[str, Tensor] | None = None
        self.clock = Stopwatch()
        self._partial: Path | None = None
        self._sound: Checkpoint | None = None  # the newest that was seen not to have diverged

    def fit(self, resume: Checkpoint | None = None, say: Say = silent) -> TrainOutput:
        """Train to the end, and leave the best weights in the model where there is dev data."""
        if resume is not None:
            check_state_files(resume.trainer_folder)
            self.best, self.clock = resume.best(), Stopwatch(resume.seconds())
            self.name = resume.name() or self.name
            own = trained_weights(self.pair_model)
            if self.best is not None and is_sharded(self.pair_model):
                self.best = {name: shard_like(weight, own[name]) for name, weight in self.best.items()}
            if (mean := resume.average()) is not None:
                self.average.mean = {name: shard_like(weight, own[name]) for name, weight in mean.items()}
        if self.is_world_process_zero():
            self.reports.begin(self.name, step=resume.step if resume else 0, say=say)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)  # transformers' to change
            output = self.train(resume_from_checkpoint=None if resume is None else str(resume.trainer_folder))
        self._check(self.state.global_step)
        if (chosen := self.best or self.average.chosen(self.pair_model)) is not None:
            restore_weights(self.pair_model, chosen, self.work)
        unshard(self.pair_model)
        return output

    def restore_sound(self) -> str | None:
        """Leave weights from before the run diverged in the model, and say which; None where there are none.

        They are the best ones, or those of the newest checkpoint. All processes must call it.
        """
        if self.best is not None:
            step, found = self.state.best_global_step, "the best weights"
            restore_weights(self.pair_model, self.best, self.work)
        elif self._sound is not None:
            step, found = self._sound.step, "the weights"
            path = self._sound.trainer_folder / _WEIGHTS
            restore_weights(self.pair_model, load_file(path), path)
        else:
            return None
        unshard(self.pair_model)
        return f"{found} of step {step:,}" if step else found

    # What a step does

    def _run_epoch(self, *arguments: Any, **named: Any) -> None:
        with self.clock.running():
            super()._run_epoch(*arguments, **named)  # type: ignore[no-untyped-call]

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The planned batches of this rank."""
        return self.batches

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The batch on the device, sent from pinned memory while the device still computes."""
        return upload_batch(inputs, self.args.device)

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, *_: Any, **__: Any
    ) -> Any:
        """The loss of a batch; its parts go to the ledger."""
        rows, dataset = inputs.pop("numbers"), inputs.get("dataset")
        parts = model(**inputs)
        name = None if dataset is None else self.datasets[dataset]
        self.losses.add(parts, rows, self.state.global_step, name)
        return (parts["loss"], parts) if return_outputs else parts["loss"]

    def _get_grad_norm(self, _: nn.Module, grad_norm: Any = None) -> Any:
        """The norm where clipping needed it anyway; Trainer would compute it for the log alone."""
        return grad_norm.full_tensor() if hasattr(grad_norm, "full_tensor") else grad_norm

    @contextmanager
    def _defer_fsdp_gradient_reduction(self) -> Iterator[None]:
        """Add up accumulated gradients as shares: whole ones would take a whole model's memory."""
        yield

    # What it tells

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the loss's parts to an entry that has the loss."""
        if "loss" in logs:
            logs.update(self.losses.drain())
        super().log(logs, start_time)
        # Where fp16 scales its losses, a gradient beyond its range is skipped and says nothing.
        norms = [] if self.args.fp16 else [entry.get("grad_norm") for entry in self.state.log_history]
        self._stop_if(gradient_problem([norm for norm in norms if norm is not None]), self.state.global_step)

    def _check(self, step: int) -> None:
        """Look for all signs of divergence that the steps so far may have left; all ranks alike."""
        self.losses.check()
        with self.clock.paused():
            found = torch.zeros((), dtype=torch.float64)
            if self.is_world_process_zero() or is_sharded(self.pair_model):
                with unsharded_root(self.pair_model):
                    found += self.collapse.spread()
            self._stop_if(self.collapse.problem(float(self._from_main(found))), step)

    def _stop_if(self, problem: str | None, step: int) -> None:
        if problem is not None:
            raise Diverged(problem, step=step, lr=self.args.learning_rate)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Score the dev data on rank 0, or, where no rank has the whole model, on all; all get the score."""
        if self.evaluate_dev is None:
            return {}
        self._check(self.state.global_step)
        with self.clock.paused():
            self.pair_model.eval()
            scores = torch.zeros(len(self.dev_figures), dtype=torch.float64)
            if self.is_world_process_zero() or is_sharded(self.pair_model):
                with self.average.applied(self.pair_model), unsharded_root(self.pair_model):
                    scores += torch.tensor(self.evaluate_dev(), dtype=torch.float64)
            found = self._from_main(scores).tolist()
            metrics = {f"eval_{name}": score for name, score in zip(self.dev_figures, found, strict=True)}
            self.log(metrics)
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _from_main(self, value: Tensor) -> Tensor:
        if not is_distributed():
            return value
        value = value.to(self.args.device)
        torch.distributed.broadcast(value, src=0)
        return value.cpu()

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        better: bool = super()._determine_best_metric(metrics, trial)
        if better:
            self.state.best_global_step = self.state.global_step
            self.best = copy_weights(self.average.chosen(self.pair_model) or trained_weights(self.pair_model))
        return better

    # What it keeps

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        if self.control.should_training_stop:
            return  # the model itself comes next
        self._check(self.state.global_step)
        with self.clock.paused():
            main = self.is_world_process_zero()
            with checkpoint_folder(self.work, self.state.global_step, main=main) as self._partial:
                super()._save_checkpoint(model, trial)
                best, mean = (
                    weights and gather_weights(weights, main=main)
                    for weights in (self.best, self.average.mean)
                )
                if main:
                    write_extras(self._partial, best, mean, seconds=self.clock.seconds, name=self.name)
            self._sound = newest_checkpoint(self.work)

    def _get_output_dir(self, trial: Any) -> str:  # noqa: ARG002 - Trainer's
        return str(self._partial or self.args.output_dir)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Tensor] | None = None) -> None:
        folder = Path(output_dir or self.work)
        folder.mkdir(parents=True, exist_ok=True)
        weights = state_dict or gather_weights(trained_weights(self.pair_model), main=self.args.should_save)
        if self.args.should_save:
            save_file({name: weight.contiguous() for name, weight in weights.items()}, folder / _WEIGHTS)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if is_sharded(self.pair_model):
            parts, folder = (self.pair_model, self.optimizer, self.lr_scheduler), Path(output_dir)
            save_optimiser(*parts, folder, main=self.args.should_save)
        else:
            super()._save_optimizer_and_scheduler(output_dir)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None and is_sharded(self.pair_model):
            load_optimiser(self.pair_model, self.optimizer, self.lr_scheduler, Path(checkpoint))
        else:
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        folder = Path(resume_from_checkpoint)
        restore_weights(model or self.pair_model, load_file(folder / _WEIGHTS), folder / _WEIGHTS)
        if not is_sharded(self.pair_model):  # which can't run in parts yet
            resumed = Checkpoint(folder.parent)
            self._check(resumed.step)
            self._sound = resumed
