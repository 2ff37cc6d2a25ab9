"""The vectors of a list of texts, cached in a folder for later runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.encoding.encode_run import encode_file
from aoe_train.encoding.vector_file import read_record
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.system.files import write_errors
from pairkit.dataset.parquet import write_parquet

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


class TextVectors:
    """A cached file of vectors, named by a hash of texts, model and settings; interrupted runs resume it."""

    def __init__(
        self,
        texts: Sequence[str],
        identity: Mapping[str, Any],
        prompt: str,
        *,
        normalize: bool | None = None,
        folder: Path,
    ) -> None:
        self._texts, self._folder = texts, folder
        self._made_of: dict[str, Any] = {"model": dict(identity), "prompt": prompt, "normalize": normalize}

    @cached_property
    def path(self) -> Path:
        """The file's path; the file may not exist yet."""
        digest = hashlib.sha256(json.dumps(self._made_of, sort_keys=True).encode())
        for text in self._texts:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return self._folder / f"vectors-{digest.hexdigest()[:32]}.npy"

    def load_or_make(self, encoder: Callable[[], Encoder], show: Listener) -> npt.NDArray[np.float32]:
        """The vectors (text, dim), mapped into memory; encoded first if they aren't cached."""
        if not self.path.is_file() or read_record(self.path) is None:
            self._make(encoder(), show)
        return np.asarray(np.load(self.path, mmap_mode="r"))

    def _make(self, encoder: Encoder, show: Listener) -> None:
        with write_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        options = {name: self._made_of[name] for name in ("prompt", "normalize")}
        with TemporaryDirectory(dir=self._folder, prefix=".texts.") as scratch:
            table = Path(scratch) / "texts.parquet"
            write_parquet(table, pl.DataFrame({"text": list(self._texts)}))
            encode_file(
                table,
                self.path,
                partial(map, partial(encoder.encode, **options)),
                encoder.dim,
                self._made_of,
                fresh=self.path.exists(),  # an existing file doesn't match its record
                show=show,
            )
        show(Progress("encode", ended=True))
