"""A GGUF file of SmolLM2's kind, whose weights have few bits, as a folder of transformers in float32.

Reading such a file takes 20 s of a core, so it is done once. float32 holds what the file says, so that a run
does not start from weights that were rounded once more.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aoe_train.model.backbones.quiet import quietly
from aoe_train.model.folder.files import read_object
from pairkit.app.errors import DataError
from pairkit.app.extras import needed_for
from pairkit.app.printable import one_line
from pairkit.app.terminal import say
from pairkit.system.files import open_own, sha256, whole_folder, write_errors, write_json

_HASHES = "sha256.json"  # of each file beside it


def dequantized(find: Callable[[], Path], kept: Path) -> Path:
    """The folder `kept`, read from the file that `find` gives where it is absent or has changed since."""

    def make(folder: Path) -> None:
        source = find()
        say(f"{source.name}: its weights are unpacked to {kept}, once")
        _convert(source, folder)

    return _made_once(kept, make)


def _made_once(kept: Path, make: Callable[[Path], None]) -> Path:
    """The folder `kept`, made where it is absent or has changed since."""
    if _is_whole(kept):
        return kept
    with write_errors(kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
    with open_own(kept.with_name(f"{kept.name}.lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one makes it, and the others wait for it
        if not _is_whole(kept):
            with whole_folder(kept) as folder:
                make(folder)
                write_json(folder / _HASHES, {path.name: sha256(path) for path in folder.iterdir()})
    return kept


def _is_whole(folder: Path) -> bool:
    try:
        hashes = read_object(folder / _HASHES)
        return bool(hashes) and all(sha256(folder / name) == value for name, value in hashes.items())
    except (OSError, DataError):
        return False


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
