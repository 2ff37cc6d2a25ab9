"""Pre-trains a RAN on plain texts by masked language modelling, and writes a model folder.

Kill it and run it again: it continues from the newest checkpoint in `OUT.work`, with the result of an
undisturbed run. `OUT.work` is removed after the model folder is written.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers import (
    AutoModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer import TRAINING_ARGS_NAME

from aoe_train import ran
from pairkit import __version__
from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import sha256, whole_folder, write_json
from pairkit.base.system.folders import try_read_json_object, work_beside
from papers.ran.corpus import (
    Corpus,
    load_tokenizer,
    read_texts,
    tokenize_corpus,
)
from papers.ran.masked_lm import (
    MaskedSequences,
    RanForMaskedLM,
    Vocabulary,
    pad_examples,
)
from papers.ran.settings import PretrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, TrainerControl, TrainerState

_RUN_FILE = "run.json"
_PROGRESS_TEXTS = 1000  # tokenised texts between two progress events
# A training has diverged if the loss of this many last log entries exceeds this multiple of the first.
_DIVERGED_ENTRIES = 3
_DIVERGED_RATIO = 2


def pretrain(
    settings: PretrainSettings, *, progress: bool | Listener = True
) -> dict[str, Any]:
    """Run or continue a pre-training.

    Returns:
        `out`, `steps`, `tokens` (without padding), `seconds` (of this process), `loss_first` (first step)
        and `loss_last` (mean of the last log interval).
    """
    work = work_beside(settings.out)
    origin = _origin(settings)
    _open_work(settings, work, origin)
    source = settings.tokenizer or settings.init_from
    tokenizer = load_tokenizer(Path(source or ""), lowercase=settings.lowercase)
    texts = read_texts(settings.texts, settings.column)
    with Display(progress) as show:
        return _run(settings, origin, tokenizer, texts, work, show)


def _run(
    settings: PretrainSettings,
    origin: dict[str, Any],
    tokenizer: PreTrainedTokenizerFast,
    texts: Iterator[str],
    work: Path,
    show: Listener,
) -> dict[str, Any]:
    corpus = tokenize_corpus(
        _counted(texts, show),
        tokenizer,
        length=settings.length,
        text_length=settings.text_length,
    )
    set_seed(settings.seed)
    model = _model(settings, tokenizer)
    trainer = _trainer(settings, model, corpus, Vocabulary.of(tokenizer), work)
    trainer.add_callback(_ReportProgress(show))
    trained = trainer.train(resume_from_checkpoint=_newest_checkpoint(work))
    steps = trainer.state.global_step
    sequences = cast("MaskedSequences", trainer.train_dataset)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    result = {
        "out": str(settings.out),
        "steps": steps,
        "tokens": sequences.tokens(min(steps * _batch(trainer.args), len(sequences))),
        "seconds": round(trained.metrics["train_runtime"], 1),
        "loss_first": losses[0],
        "loss_last": losses[-1],
    }
    if trainer.is_world_process_zero():
        counts = {
            "texts": corpus.texts,
            "empty": corpus.empty,
            "cut": corpus.cut,
            "sequences": len(corpus),
        }
        run = {**origin, "corpus": counts, "losses": losses, "result": result}
        with whole_folder(settings.out) as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            write_json(folder / _RUN_FILE, run)
        shutil.rmtree(work)
    return result


def _counted(texts: Iterator[str], show: Listener) -> Iterator[str]:
    """Pass the texts on and report progress."""
    number = 0
    for number, text in enumerate(texts, start=1):
        if number % _PROGRESS_TEXTS == 1:
            show(Progress("tokenise", number - 1))
        yield text
    show(Progress("tokenise", number, ended=True))


def _origin(settings: PretrainSettings) -> dict[str, Any]:
    """Everything that the result depends on; a run continues only if it is the same."""
    missing = [path for path in settings.texts if not path.is_file()]
    if missing:
        raise DataError("no such file", path=missing[0])
    return {
        "version": __version__,
        "settings": settings.model_dump(mode="json", exclude={"fresh", "out"}),
        "inputs": {str(path): sha256(path) for path in settings.texts},
    }


def _open_work(settings: PretrainSettings, work: Path, origin: dict[str, Any]) -> None:
    if settings.fresh:
        shutil.rmtree(work, ignore_errors=True)
    elif settings.out.exists():
        raise ConfigError(
            f"{settings.out}: already exists; choose another --out, or --fresh to replace it"
        )
    if not (work / _RUN_FILE).exists():
        write_json(work / _RUN_FILE, origin)
    elif try_read_json_object(work / _RUN_FILE) != origin:
        raise ConfigError(
            f"{work}: has a run with other settings or texts; use the same ones, or --fresh to discard it"
        )


def _newest_checkpoint(work: Path) -> str | None:
    """The newest complete checkpoint: one with `trainer_state.json`, which transformers writes last."""
    states = work.glob("checkpoint-*/trainer_state.json")
    complete = [path.parent for path in states if path.stat().st_size]
    newest = max(complete, key=_step, default=None)
    return None if newest is None else str(newest)


def _step(checkpoint: Path) -> int:
    _, _, number = checkpoint.name.rpartition("-")
    return int(number)


def _model(
    settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast
) -> RanForMaskedLM:
    sizes = settings.sizes
    dim = sizes.dim
    vocab_size = len(tokenizer)
    embeddings = None
    if settings.init_from is not None:
        embeddings = _read_embeddings(settings.init_from)
        vocab_size, dim = embeddings.shape
    model = RanForMaskedLM(
        ran.RanConfig(
            vocab_size=vocab_size,
            hidden_size=dim,
            num_hidden_layers=sizes.layers,
            num_attention_heads=sizes.heads,
            head_dim=sizes.head_dim,
            window_size=sizes.window,
            hidden_dropout_prob=sizes.dropout,
            attention_probs_dropout_prob=sizes.dropout,
            pad_token_id=tokenizer.pad_token_id,
            # 0.02 is for the base width. With it, a narrower model's attention is too weak to learn more than
            # word frequencies.
            initializer_range=0.02 * math.sqrt(768 / dim),
        )
    )
    if embeddings is not None:
        if len(tokenizer) > len(embeddings):
            raise ConfigError(
                f"{settings.init_from}: embeddings of {len(embeddings)} tokens, but the tokenizer has "
                f"{len(tokenizer)}; use the encoder's tokenizer"
            )
        with torch.no_grad():
            model.ran.embed_tokens.weight.copy_(embeddings)
    return model


def _read_embeddings(folder: Path) -> torch.Tensor:
    """The token embeddings (token, dim) of a transformers encoder."""
    try:
        encoder: Any = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{folder}: no encoder ({error}); expected a folder with config.json and model.safetensors"
        ) from error
    weight: torch.Tensor = encoder.get_input_embeddings().weight
    return weight.detach().float()


def _trainer(
    settings: PretrainSettings,
    model: RanForMaskedLM,
    corpus: Corpus,
    vocabulary: Vocabulary,
    work: Path,
) -> Trainer:
    args = _arguments(settings, work)
    examples = math.ceil(settings.epochs * len(corpus))
    if settings.steps is not None:
        examples = settings.steps * _batch(args)
    trainer = _Trainer(
        model=model,
        args=args,
        train_dataset=MaskedSequences(
            corpus, vocabulary, settings.mask, seed=settings.seed, examples=examples
        ),
        data_collator=pad_examples,
        callbacks=[_StopIfDiverged()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _batch(args: TrainingArguments) -> int:
    """The number of examples per step."""
    return int(
        args.train_batch_size * args.world_size * args.gradient_accumulation_steps
    )


def _arguments(settings: PretrainSettings, work: Path) -> TrainingArguments:
    # transformers 5.17 calls it gradient checkpointing; 5.23 calls it activation checkpointing.
    has_new = hasattr(TrainingArguments, "activation_checkpointing")
    name = "activation_checkpointing" if has_new else "gradient_checkpointing"
    recompute: dict[str, Any] = {name: settings.gradient_checkpointing}
    args = TrainingArguments(
        output_dir=str(work),
        seed=settings.seed,
        num_train_epochs=1,  # the dataset repeats the corpus
        train_sampling_strategy="sequential",
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.lr,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup,
        optim="adamw_torch_fused",
        ddp_find_unused_parameters=True,  # texts of one window don't use the recurrence's parameters
        logging_steps=settings.log_steps,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        save_steps=settings.checkpoint_steps,
        save_total_limit=2,
        report_to="none",
        dataloader_pin_memory=torch.cuda.is_available(),
        remove_unused_columns=False,
        disable_tqdm=True,
        log_level="error",
        **recompute,
    )
    args._n_gpu = min(args.n_gpu, 1)  # no DataParallel, which can't split these batches
    precision = settings.precision
    if precision == "auto":
        on_gpu = args.device.type == "cuda" and torch.cuda.is_bf16_supported(
            including_emulation=False
        )
        precision = "bf16" if on_gpu else "fp32"
    args.bf16 = precision == "bf16"
    args.fp16 = precision == "fp16"
    args.mixed_precision = "no" if precision == "fp32" else precision
    return args


class _Trainer(Trainer):
    """Removes the pickled arguments from checkpoints, because they are never read."""

    def _save(
        self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None
    ) -> None:
        super()._save(output_dir, state_dict)
        Path(output_dir or str(self.args.output_dir), TRAINING_ARGS_NAME).unlink(
            missing_ok=True
        )


class _ReportProgress(TrainerCallback):
    """Reports steps to a listener."""

    def __init__(self, show: Listener) -> None:
        self._show = show

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002
        state: TrainerState,
        *_: Any,
        **__: Any,
    ) -> None:
        """See `TrainerCallback`."""
        if state.is_world_process_zero:
            self._show(Progress("pre-train", state.global_step, state.max_steps))

    def on_train_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - named as transformers does
        state: TrainerState,
        *_: Any,
        **__: Any,
    ) -> None:
        """See `TrainerCallback`."""
        if state.is_world_process_zero:
            self._show(
                Progress("pre-train", state.global_step, state.max_steps, ended=True)
            )


class _StopIfDiverged(TrainerCallback):
    """Stops a run whose loss is NaN, or far above its first value for several log entries.

    The first loss is near that of random guesses, so a model that learns never stays above it.
    """

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - named as transformers does
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Check the losses so far."""
        losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
        last = losses[-1:]
        if logs and "train_loss" in logs:
            last.append(logs["train_loss"])
        sign = _sign_of_divergence(losses, last)
        if sign is None:
            return
        checkpoint = _newest_checkpoint(Path(str(args.output_dir)))
        kept = "" if checkpoint is None else f"; its newest checkpoint is {checkpoint}"
        raise ConfigError(
            f"training diverged at step {state.global_step:,}: {sign}; train again with --fresh and a lower"
            f" lr (now {args.learning_rate:g}), such as --set lr={args.learning_rate / 10:g}{kept}"
        )


def _sign_of_divergence(losses: Sequence[float], last: Sequence[float]) -> str | None:
    for loss in last:
        if not math.isfinite(loss):
            return f"the loss became {loss}"
    if len(losses) <= _DIVERGED_ENTRIES:
        return None
    first, *_ = losses
    if min(losses[-_DIVERGED_ENTRIES:]) <= _DIVERGED_RATIO * first:
        return None
    return f"the loss rose from {first:.3g} to {losses[-1]:.3g}"
