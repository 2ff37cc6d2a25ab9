"""Encodes a file of texts part by part, with bounded memory; an interrupted run repeats at most one part.

`TextVectors` encodes a list of texts in the same way, as a cached file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.encoding.source import MAX_TEXTS, TextSource, open_source, parts, texts
from aoe_train.encoding.vector_file import (
    PartialOutput,
    Quantization,
    open_partial,
    read_finished,
    read_record,
    write_record,
    write_vectors,
)
from aoe_train.model.model_folder import OutputResult
from aoe_train.model.quantization import DTYPES, Quantize, value_ranges, width_of
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import open_own, sha256, write_errors
from pairkit.base.system.folders import differing
from pairkit.base.system.text_lines import no_such_file

if TYPE_CHECKING:
    import numpy.typing as npt

    from aoe_train.model.encoder import Encoder

_VECTOR = "vector"
_STDIN = "-"
_LEVEL = 3  # of zstd; fixed, so that the bytes do not depend on a library's default
_FORMAT = 2  # of the output; a run doesn't resume one with another format

NO_QUANTIZATION = Quantization()
Embed = Callable[[Iterable[list[str]]], Iterator[np.ndarray]]
"""Maps parts to float32 (text, dim) in order, such as `partial(map, encoder.encode)`."""


@dataclass(frozen=True, slots=True)
class Encoded(OutputResult):
    """The result of a run.

    Attributes:
        out: The file.
        texts: Number of texts, `resumed` of which an interrupted run had encoded.
        dim: Dimensions of a vector before bits are packed.
        seconds: Duration of this run, without loading the model.
        quantize: Number type of the vectors.
    """

    out: Path
    texts: int
    dim: int
    resumed: int
    seconds: float
    quantize: Quantize = "float32"

    @property
    def texts_per_s(self) -> float:
        """Speed of this run."""
        return (self.texts - self.resumed) / self.seconds if self.seconds else 0.0

    def notes(self) -> list[str]:
        """Number of texts and speed."""
        resumed = f", {self.resumed:,} of them done before" if self.resumed else ""
        return [f"{self.texts:,} texts{resumed}; {self.texts_per_s:,.1f} per second"]

    def next_steps(self) -> list[tuple[str, str]]:
        """How to read the vectors."""
        reader = "numpy.load" if self.out.suffix == ".npy" else "polars.read_parquet"
        return [("read the vectors in Python", f"{reader}({str(self.out)!r})")]

    def to_dict(self) -> dict[str, Any]:
        """The `--json` object."""
        return {**OutputResult.to_dict(self), "texts_per_s": round(self.texts_per_s, 2)}


def check_files(path: Path, out: Path) -> None:
    """Refuse a missing input or another kind of output, before the model is loaded."""
    if str(path) != _STDIN and not path.is_file():
        from pairkit.dataset.reading.tables import sheet_of  # takes a while to import

        if not sheet_of(path)[0].is_file():
            raise DataError(
                "is a folder; give one file" if path.is_dir() else no_such_file(path),
                path=path,
            )
    if out.suffix not in (".npy", ".parquet"):
        raise ConfigError(f"{out}: expected .npy or .parquet")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; choose another --out")


def encode_file(
    path: str | Path,
    out: str | Path,
    embed: Embed,
    dim: int,
    settings: Mapping[str, Any],
    *,
    columns: Mapping[str, str] | None = None,
    quantization: Quantization = NO_QUANTIZATION,
    fresh: bool = False,
    show: Listener,
) -> Encoded:
    """Write the vectors in the order of the input; a stopped call resumes from `OUT.partial`."""
    start = time.monotonic()
    out = Path(out)
    quantize = quantization.quantize
    with open_partial(out, fresh=fresh) as partial:
        file = _input_file(partial, path)
        source = open_source(file, columns)
        made_of: dict[str, Any] = {
            "parts": [_FORMAT, MAX_TEXTS],
            "text column": source.column,
            "input": sha256(source.path),
        }
        if source.path != file:
            made_of["sheet"] = file.name
        made_of |= {**settings, **quantization.settings()}
        if out.exists() and not fresh:
            finished = read_finished(out, made_of)
            partial.begun = False
            count = finished["texts"]
            return Encoded(out, count, finished["dim"], count, 0.0, quantize)
        if not partial.begun:
            count = _checked(source, table=out.suffix == ".parquet")
            if count == 1 and quantize == "int8" and quantization.ranges is None:
                raise ConfigError(
                    f"{source.path}: one text is not enough to determine the ranges of int8; give"
                    " --calibration"
                )
            out.unlink(missing_ok=True)  # from now on it exists only if it is complete
            partial.begin(made_of, count, dim)
        elif differences := differing(partial.state.made_of, made_of):
            raise ConfigError(
                f"{out}: its unfinished run differs in {'; '.join(differences)}; repeat the same command, or"
                " give --fresh to start over"
            )
        resumed = partial.state.done
        _fill(partial, source, embed, show)
        _finish(partial, source, out, made_of, quantization)
        seconds = round(time.monotonic() - start, 3)
        encoded = Encoded(
            out, partial.state.texts, partial.state.dim, resumed, seconds, quantize
        )
        partial.begun = False
    return encoded


def _input_file(partial: PartialOutput, path: str | Path) -> Path:
    """The input as a file; standard input is copied into the partial folder."""
    if str(path) != _STDIN:
        return Path(path)
    copy = partial.folder / "stdin.txt"
    with write_errors(copy), open_own(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _checked(source: TextSource, *, table: bool) -> int:
    """The number of texts, after checking all of them."""
    count = sum(1 for _ in texts(source))
    if not count:
        raise DataError("has no rows; expected at least one", path=source.path)
    if table and _VECTOR in source.schema().names:
        raise ConfigError(
            f"{source.path}: has a column {_VECTOR!r} already; rename it, or write .npy"
        )
    return count


def _fill(
    partial: PartialOutput,
    source: TextSource,
    embed: Embed,
    show: Listener,
) -> None:
    start = partial.state.done
    texts_read = 0

    def remaining() -> Iterator[list[str]]:
        nonlocal texts_read
        for part in parts(texts(source)):
            first = texts_read
            texts_read += len(part)
            if first >= start:
                yield part

    show(Progress("encode", partial.state.done, partial.state.texts))
    for vectors in embed(remaining()):
        invalid = ~np.isfinite(vectors).all(axis=1)
        if invalid.any():
            number = partial.state.done + int(invalid.argmax())
            row, _ = next(islice(source.values(), number, None))
            raise DataError(
                "the vector of this text contains NaN or infinity",
                path=source.path,
                row=row,
            )
        partial.append(vectors)
        show(Progress("encode", partial.state.done, partial.state.texts))
    if not texts_read == partial.state.done == partial.state.texts:
        raise DataError(
            "was changed while being read; give --fresh to start over", path=source.path
        )


def _finish(
    partial: PartialOutput,
    source: TextSource,
    out: Path,
    made_of: Mapping[str, Any],
    quantization: Quantization,
) -> None:
    """Write the output from all vectors."""
    if quantization.quantize == "int8" and quantization.ranges is None:
        quantization = Quantization("int8", value_ranges(partial.blocks()))
    if out.suffix == ".parquet":
        complete = partial.folder / "table.parquet"
        _write_table(complete, source, partial, quantization)
    elif quantization.quantize == "float32":
        complete = partial.vectors
    else:
        complete = partial.folder / "codes.npy"
        write_vectors(complete, partial, quantization)
    write_record(out, made_of, partial.state, complete.stat().st_size, quantization)
    with write_errors(out):
        complete.replace(out)


def _write_table(
    path: Path,
    source: TextSource,
    vectors: PartialOutput,
    quantization: Quantization,
) -> None:
    """Write all columns of `source` and the column `vector`, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = source.schema()
    width = width_of(vectors.state.dim, quantization.quantize)
    number = pa.from_numpy_dtype(DTYPES[quantization.quantize])
    vector = pa.field(_VECTOR, pa.list_(number, width), nullable=False)
    start = 0
    with (
        write_errors(path),
        open_own(path, "wb") as file,
        pq.ParquetWriter(
            file,
            schema.append(vector),
            compression="zstd",
            compression_level=_LEVEL,
        ) as writer,
    ):
        for table in source.tables(schema):
            flat = pa.array(
                quantization.apply(vectors.read(start, table.num_rows)).ravel()
            )
            column = pa.FixedSizeListArray.from_arrays(flat, width)
            writer.write_table(table.append_column(vector, column))
            start += table.num_rows
        writer.close()
        file.flush()
        os.fsync(file.fileno())


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
        self._texts = texts
        self._folder = folder
        self._made_of: dict[str, Any] = {
            "model": dict(identity),
            "prompt": prompt,
            "normalize": normalize,
        }

    @cached_property
    def path(self) -> Path:
        """The file's path; the file may not exist yet."""
        digest = hashlib.sha256(json.dumps(self._made_of, sort_keys=True).encode())
        for text in self._texts:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return self._folder / f"vectors-{digest.hexdigest()[:32]}.npy"

    def load_or_make(
        self,
        encoder: Callable[[], Encoder],
        show: Listener,
    ) -> npt.NDArray[np.float32]:
        """The vectors (text, dim), mapped into memory; encoded first if they aren't cached."""
        if not self.path.is_file() or read_record(self.path) is None:
            self._make(encoder(), show)
        return np.asarray(np.load(self.path, mmap_mode="r"))

    def _make(self, encoder: Encoder, show: Listener) -> None:
        import polars as pl  # slow to import, and a command doesn't need it

        from pairkit.dataset.parquet import write_parquet

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
