"""A GGUF file of SmolLM2's kind, whose weights have few bits, as a folder of transformers in float32.

Reading such a file takes 20 s of a core, so it is done once. float32 holds what the file says, so that a run
does not start from weights that were rounded once more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aoe_train._backbones.kept import made_once
from aoe_train._backbones.quiet import quietly
from pairkit.errors import DataError
from pairkit.extras import needed_for
from pairkit.printable import one_line
from pairkit.terminal import say


def dequantized(find: Callable[[], Path], kept: Path) -> Path:
    """The folder `kept`, read from the file that `find` gives where it is absent or has changed since.

    Args:
        find: Gives the GGUF file, and has checked it.
        kept: Where the folder is, or will be, whole or not at all; other processes may ask for it as well.

    Raises:
        ConfigError: gguf is not installed; `kept` can't be written; or see `find`.
        DataError: The file can't be read.
    """

    def make(folder: Path) -> None:
        source = find()
        say(f"{source.name}: its weights are unpacked to {kept}, once")
        _convert(source, folder)

    return made_once(kept, make)


def _convert(source: Path, folder: Path) -> None:
    with needed_for(f"reading {source.name}"):
        import gguf  # noqa: F401 - transformers reads the file with it
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModel, AutoTokenizer

    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
            backbone, report = AutoModel.from_pretrained(
                source.parent, gguf_file=source.name, dtype=torch.float32, output_loading_info=True
            )
    except Exception as error:  # whatever a file of another kind makes gguf and transformers raise
        found = f"{type(error).__name__}: {one_line(str(error), 200)}"
        raise DataError(f"not readable as a LLaMA in GGUF ({found})", path=source) from error
    if report["missing_keys"]:
        raise DataError(f"lacks weights, such as {min(report['missing_keys'])}", path=source)
    _split_digits(tokenizer)
    tokenizer.model_max_length = backbone.config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    del backbone.config.quantization_config  # its weights are ordinary ones now
    backbone.config.save_pretrained(folder)
    save_file(backbone.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})


def _split_digits(tokenizer: Any) -> None:
    """Cut words as SmolLM2 does, each digit alone; transformers reads any such file as GPT-2's."""
    from tokenizers import pre_tokenizers

    digits, words = pre_tokenizers.Digits(individual_digits=True), tokenizer.backend_tokenizer.pre_tokenizer
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
