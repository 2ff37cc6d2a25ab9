"""Models of sentence-transformers that have modules which only that library computes."""

from __future__ import annotations

import copy
import hashlib
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.evaluation.embedders.embedder import count_words, find_separator, shown_name
from aoe_train.model.folder import ADAPTERS_FILE, check_settings
from aoe_train.model.folder.modules import check_modules
from aoe_train.model.origin import versions
from aoe_train.settings.prompts import NamedPrompts
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.system.files import sha256

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from aoe_train.settings.training import EncodingPrecision, Similarity

_DTYPES = {"auto": "auto", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_OLDEST = 6
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")


class SentenceTransformersEmbedder:
    """A folder run by sentence-transformers, without code of the folder's own; see `Embedder`."""

    def __init__(self, folder: Path, source: str, precision: EncodingPrecision, refusal: ConfigError) -> None:
        """Load it."""
        _refuse_code(folder)
        if precision not in _DTYPES:
            raise ConfigError(
                f"--precision {precision}: {refusal}; sentence-transformers runs it, in fp32 or bf16"
            )
        self._model = _load(folder, _DTYPES[precision], refusal)
        self.name = shown_name(source)
        self.separator = _separator(self._model)
        self.device = self._model.device
        self.identity = _identity(folder, precision, str(self.device))
        named = {name: words or "" for name, words in self._model.prompts.items()}
        self.prompts = NamedPrompts(named, self._model.default_prompt_name)
        self.similarity: Similarity = self._model.similarity_fn_name

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim), with the folder's default prompt if it names one."""
        return np.asarray(self._model.encode(texts, prompt=prompt, show_progress_bar=False), np.float32)

    def token_counts(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """See `TokenCounter`; it may be called in another thread than `encode`."""
        tokenizer, words = self._own_tokenizer, self.prompts.chosen(prompt=prompt, name=None)
        texts = [words + text for text in texts]
        if hasattr(tokenizer, "encode_batch_fast"):
            found = [len(one.ids) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        elif callable(tokenizer):
            found = [len(ids) for ids in tokenizer(texts, truncation=False, verbose=False)["input_ids"]]
        else:
            return count_words(texts)
        return np.clip(found, 1, self._model.max_seq_length)

    @cached_property
    def _own_tokenizer(self) -> Any:
        # A copy, as the library sets truncation and padding in its own with each call.
        return copy.deepcopy(getattr(self._model, "tokenizer", None))


def _load(folder: Path, dtype: str, refusal: ConfigError) -> SentenceTransformer:
    try:
        _check_release()
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ConfigError(f"{refusal}, once `pip install sentence-transformers` has brought it") from refusal
    try:
        return SentenceTransformer(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": dtype, "use_safetensors": True},
        )
    except (ImportError, AttributeError) as error:  # a module that it lacks, or that is the folder's own
        raise ConfigError(f"{folder}: sentence-transformers lacks one of its modules ({error})") from error
    except Exception as error:  # whatever a damaged file makes torch, safetensors or tokenizers raise
        text = one_line(str(error), 200)
        raise DataError(
            f"not loadable by sentence-transformers ({type(error).__name__}: {text}); copy it again",
            path=folder,
        ) from error


def _refuse_code(folder: Path) -> None:
    """Refuse all that would run code that the folder chose: pickles, and modules that are on no list."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in _PICKLES and not any(path.parent.glob("model*.safetensors")):
            raise ConfigError(
                f"{path}: a pickle, which can run code when loaded; convert it to model.safetensors where you"
                " trust it"
            )
    parts = {folder / module.path for module in check_modules(folder)}
    for part in sorted({folder, *parts}):
        check_settings(part)
    for part in sorted(parts):
        if (part / ADAPTERS_FILE).is_file():
            raise ConfigError(f"{part}: holds adapters; merge them into their base first")


def _check_release() -> None:
    """Releases before 6 ran code that a folder named."""
    found = version("sentence-transformers")
    if int(found.partition(".")[0]) < _OLDEST:
        raise ConfigError(
            f"sentence-transformers {found} may run code that a model's folder names; `pip install"
            f" 'sentence-transformers>={_OLDEST}'`"
        )


def _separator(model: SentenceTransformer) -> str:
    tokenizer: Any = getattr(model, "tokenizer", None)
    return find_separator(tokenizer) if hasattr(tokenizer, "sep_token") else "\n"


def _identity(folder: Path, precision: str, device: str) -> str:
    from sentence_transformers import __version__

    digest = hashlib.sha256(repr((__version__, versions(), precision, device)).encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            digest.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
    return digest.hexdigest()
