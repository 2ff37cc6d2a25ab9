"""Pre-train a RAN on plain texts by masked language modelling, into a model folder.

Kill it at any moment and run it again: it goes on from the newest checkpoint in `OUT.work`, and trains what
an undisturbed run would have. Once the folder is written, `OUT.work` is removed.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer import TRAINING_ARGS_NAME

from aoe_train._backbones.ran import RanConfig, RanForMaskedLM
from aoe_train._backbones.ran.corpus import Corpus, read_texts, tokenize_corpus
from aoe_train._backbones.ran.initialise import copy_embeddings, read_embeddings
from aoe_train._backbones.ran.masking import Vocabulary
from aoe_train._backbones.ran.sequences import MaskedSequences, pad_examples
from aoe_train._backbones.ran.tokenizer import load_tokenizer
from aoe_train._backbones.recompute import recompute_argument
from aoe_train._conflicts import Say, silent
from aoe_train._model_folder.files import read_json
from aoe_train._precision import training_note
from aoe_train._trainer.arguments import one_gpu, set_precision
from aoe_train._trainer.callbacks import ProgressCallback
from aoe_train._trainer.divergence import Diverged, gradient_sign, loss_sign
from aoe_train._trainer.resume import check_states
from pairkit import __version__
from pairkit.errors import ConfigError, DataError
from pairkit.files import sha256, whole_folder, write_json
from pairkit.progress import Display, Listener, Progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, TrainerControl, TrainerState

    from aoe_train._pretrain_settings import PretrainSettings

_RUN_FILE = "run.json"
_TOLD = 1000  # texts between two words on how many are tokenised


def pretrain(
    settings: PretrainSettings, *, say: Say = silent, progress: bool | Listener = True
) -> dict[str, Any]:
    """Run, or go on with, one pre-training.

    Args:
        settings: What to train on, what to train, and how long.
        say: Told what goes on.
        progress: Shown on stderr, or told to a function.

    Returns:
        `out`, `steps`, `tokens` (read by the model, padding left out), `seconds` (of this process),
        `loss_first` (of the first step) and `loss_last` (mean of the last log interval).

    Raises:
        ConfigError: Something stands at `out`, unusable settings, or training diverged.
        DataError: Unusable texts or vocabulary.
    """
    work = settings.out.with_name(f"{settings.out.name}.work")
    origin = _origin(settings)
    _open_work(settings, work, origin)
    source = settings.tokenizer or settings.init_from
    tokenizer = load_tokenizer(Path(source or ""), lowercase=settings.lowercase)
    texts = read_texts(settings.texts, settings.column)
    with Display(progress) as show:
        return _run(settings, origin, tokenizer, texts, work, say, show)


def _run(
    settings: PretrainSettings,
    origin: dict[str, Any],
    tokenizer: PreTrainedTokenizerFast,
    texts: Iterator[str],
    work: Path,
    say: Say,
    show: Listener,
) -> dict[str, Any]:
    corpus = tokenize_corpus(
        _counted(texts, show), tokenizer, length=settings.length, text_length=settings.text_length
    )
    set_seed(settings.seed)
    model = _model(settings, tokenizer)
    trainer = _trainer(settings, model, corpus, Vocabulary.of(tokenizer), work)
    if trainer.is_world_process_zero() and (note := training_note(settings.precision, trainer.args.device)):
        say(note)
    resume = _newest_checkpoint(work)
    if resume is not None:
        check_states(Path(resume))
    trainer.add_callback(ProgressCallback(show))
    trained = trainer.train(resume_from_checkpoint=resume)
    steps, sequences = trainer.state.global_step, cast("MaskedSequences", trainer.train_dataset)
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
        with whole_folder(settings.out) as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            counts = {
                "texts": corpus.texts,
                "empty": corpus.empty,
                "cut": corpus.cut,
                "sequences": len(corpus),
            }
            write_json(folder / _RUN_FILE, {**origin, "corpus": counts, "losses": losses, "result": result})
        shutil.rmtree(work)
    return result


def _counted(texts: Iterator[str], show: Listener) -> Iterator[str]:
    """The texts, while it is told how many were tokenised."""
    number = 0
    for number, text in enumerate(texts, start=1):
        if number % _TOLD == 1:
            show(Progress("tokenise", number - 1))
        yield text
    show(Progress("tokenise", number, ended=True))


def _origin(settings: PretrainSettings) -> dict[str, Any]:
    """What decides the result: a run may only go on from one with the same."""
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
        raise ConfigError(f"{settings.out}: already exists; give another `out`, or `fresh` to replace it")
    if not (work / _RUN_FILE).exists():
        write_json(work / _RUN_FILE, origin)
    elif read_json(work / _RUN_FILE, "give `fresh` to begin anew") != origin:
        raise ConfigError(
            f"{work}: a run with other settings or texts was begun here; give the same ones, or `fresh`"
        )


def _newest_checkpoint(work: Path) -> str | None:
    """The newest whole checkpoint: the file that is looked for is the last that transformers writes."""
    states = work.glob("checkpoint-*/trainer_state.json")
    found = [path.parent for path in states if path.stat().st_size and _step(path.parent) >= 0]
    newest = max(found, key=_step, default=None)
    return None if newest is None else str(newest)


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _model(settings: PretrainSettings, tokenizer: PreTrainedTokenizerFast) -> RanForMaskedLM:
    embeddings = None if settings.init_from is None else read_embeddings(settings.init_from)
    sizes = settings.sizes
    dim = sizes.dim if embeddings is None else embeddings.shape[1]
    model = RanForMaskedLM(
        RanConfig(
            vocab_size=len(tokenizer) if embeddings is None else len(embeddings),
            hidden_size=dim,
            num_hidden_layers=sizes.layers,
            num_attention_heads=sizes.heads,
            head_dim=sizes.head_dim,
            window_size=sizes.window,
            hidden_dropout_prob=sizes.dropout,
            attention_probs_dropout_prob=sizes.dropout,
            pad_token_id=tokenizer.pad_token_id,
            # 0.02 is for the base width; a narrower model would see too little of its attention to leave the
            # plateau of word frequencies.
            initializer_range=0.02 * math.sqrt(768 / dim),
        )
    )
    if embeddings is not None:
        if len(tokenizer) > len(embeddings):
            raise ConfigError(
                f"{settings.init_from}: embeddings of {len(embeddings)} tokens, but the tokenizer has "
                f"{len(tokenizer)}; use the encoder's own"
            )
        copy_embeddings(model.ran, embeddings)
    return model


def _trainer(
    settings: PretrainSettings,
    model: RanForMaskedLM,
    corpus: Corpus,
    vocabulary: Vocabulary,
    work: Path,
) -> Trainer:
    args = _arguments(settings, work)
    every = math.ceil(settings.epochs * len(corpus))
    examples = every if settings.steps is None else settings.steps * _batch(args)
    trainer = _Trainer(
        model=model,
        args=args,
        train_dataset=MaskedSequences(
            corpus, vocabulary, settings.mask, seed=settings.seed, examples=examples
        ),
        data_collator=pad_examples,
        callbacks=[_Watch()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _batch(args: TrainingArguments) -> int:
    """Examples of a step."""
    return int(args.train_batch_size * args.world_size * args.gradient_accumulation_steps)


def _arguments(settings: PretrainSettings, work: Path) -> TrainingArguments:
    recompute: dict[str, Any] = {recompute_argument(TrainingArguments): settings.gradient_checkpointing}
    args = TrainingArguments(
        output_dir=str(work),
        seed=settings.seed,
        num_train_epochs=1,  # the data set repeats the corpus as often as is wanted
        train_sampling_strategy="sequential",
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.lr,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup,
        optim="adamw_torch_fused",
        ddp_find_unused_parameters=True,  # texts of one window leave the recurrence's parameters out
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
    one_gpu(args)
    set_precision(args, settings.precision)
    return args


class _Trainer(Trainer):
    """Leaves out the pickle of arguments, which nobody reads: a checkpoint holds states alone."""

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        Path(output_dir or str(self.args.output_dir), TRAINING_ARGS_NAME).unlink(missing_ok=True)


class _Watch(TrainerCallback):
    """Ends a run that diverged; what it would train from there on is worth nothing."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - named as transformers does
        logs: dict[str, float] | None = None,
        **_: Any,
    ) -> None:
        entries = [entry for entry in state.log_history if "loss" in entry]
        # Where fp16 scales its losses, a gradient beyond its range is skipped and says nothing.
        norms = [] if args.fp16 else [float(entry["grad_norm"]) for entry in entries if "grad_norm" in entry]
        sign = loss_sign([entry["loss"] for entry in entries]) or gradient_sign(norms)
        if sign is None and logs and "train_loss" in logs:  # at the end: of steps after the last entry too
            sign = loss_sign([logs["train_loss"]])
        if sign is not None:
            raise _diverged(sign, args, state)


def _diverged(sign: str, args: TrainingArguments, state: TrainerState) -> ConfigError:
    diverged = Diverged(sign, step=state.global_step, lr=args.learning_rate)
    before = _newest_checkpoint(Path(str(args.output_dir)))
    return diverged if before is None else ConfigError(f"{diverged}; its newest checkpoint is {before}")
