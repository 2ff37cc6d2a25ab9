"""Pre-training from Python, as `aoe pretrain` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairkit.progress import Listener


@dataclass(frozen=True)
class Pretrained:
    """A finished run of `pretrain`.

    Attributes:
        out: The model's folder, for `train(backbone=...)`.
        tokens: Read by the model, padding left out.
        seconds: Of this process.
        loss_first: Of the first step.
        loss_last: Mean of the last log interval.
        is_main: Whether this process is the one that wrote the folder; see `Trained`.
    """

    out: Path
    steps: int
    tokens: int
    seconds: float
    loss_first: float
    loss_last: float
    is_main: bool = field(default=True, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe pretrain --json`."""
        names = ("steps", "tokens", "seconds", "loss_first", "loss_last")
        return {"out": str(self.out), **{name: getattr(self, name) for name in names}}


def pretrain(
    texts: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    tokenizer: str | Path | None = None,
    init_from: str | Path | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    precision: str | None = None,
    seed: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Sequence[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Pretrained:
    """Pre-train a Recurrent Attention Network on plain texts (whole-word MLM); the same call continues.

    Args:
        texts: Files with one text per line, or tables with a text column.
        out: The model's folder.
        tokenizer: A tokenizer's folder, or a WordPiece vocab.txt.
        init_from: An encoder's folder, to begin with its embeddings and tokenizer.
        epochs: Times that each text is seen.
        steps: Steps to train, instead of epochs.
        batch_size: Sequences a process.
        lr: Highest learning rate.
        precision: fp32, bf16, fp16 or auto.
        seed: Decides every random choice.
        config: A TOML file.
        settings: Dotted keys to values, over the file.
        fresh: Begin anew, and replace what stands at `out`.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: Something stands at `out`, unusable settings, or training diverged.
        DataError: Unusable texts or vocabulary.
    """
    from aoe_train._flags import PRETRAIN
    from aoe_train._pretrain_settings import PretrainSettings
    from pairkit.config import merge

    files = [texts] if isinstance(texts, str | Path) else list(texts)
    given = {
        "texts": files,
        "out": out,
        "tokenizer": tokenizer,
        "init_from": init_from,
        "epochs": epochs,
        "steps": steps,
        "batch_size": batch_size,
        "lr": lr,
        "precision": precision,
        "seed": seed,
        "fresh": fresh or None,
    }
    merged = merge(PretrainSettings, PRETRAIN, given, config=config, settings=settings)
    from aoe_train import _pretrain
    from aoe_train._face.notes import notes
    from aoe_train._trainer.gather import is_main, leave_group

    result = _pretrain.pretrain(merged, say=notes(progress), progress=progress)
    run = Pretrained(**{**result, "out": merged.out}, is_main=is_main())
    leave_group()
    return run
