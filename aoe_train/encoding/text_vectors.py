"""The vectors of a list of texts in a folder, where the next run that asks for the same ones finds them."""

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

from aoe_train.encoding.record import read_record
from aoe_train.encoding.run import encode_file
from pairkit.app.progress import Listener, Progress
from pairkit.dataset.parquet import write_parquet
from pairkit.system.files import write_errors

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder


class TextVectors:
    """A file of vectors, named after the texts and all else that decides it; made in parts, as any output."""

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
        """The file, be it there or not."""
        digest = hashlib.sha256(json.dumps(self._made_of, sort_keys=True).encode())
        for text in self._texts:
            said = text.encode("utf-8", "surrogatepass")
            digest.update(len(said).to_bytes(8, "little") + said)
        return self._folder / f"vectors-{digest.hexdigest()[:32]}.npy"

    def load_or_make(self, encoder: Callable[[], Encoder], show: Listener) -> npt.NDArray[np.float32]:
        """The vectors (text, dim), mapped into memory."""
        if not self.path.is_file() or read_record(self.path) is None:
            self._make(encoder(), show)
        return np.asarray(np.load(self.path, mmap_mode="r"))

    def _make(self, encoder: Encoder, show: Listener) -> None:
        stage = "encode"
        with write_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        how = {name: self._made_of[name] for name in ("prompt", "normalize")}
        make = partial(encoder.encode, **how)
        with TemporaryDirectory(dir=self._folder, prefix=".texts.") as scratch:
            listed = Path(scratch) / "texts.parquet"
            write_parquet(listed, pl.DataFrame({"text": list(self._texts)}))
            encode_file(
                listed,
                self.path,
                partial(map, make),
                encoder.dim,
                self._made_of,
                fresh=self.path.exists(),  # and is not what its record says
                advance=lambda done, total: show(Progress(stage, done, total)),
            )
        show(Progress(stage, ended=True))
