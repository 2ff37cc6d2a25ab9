"""Encodes a file of texts part by part, with bounded memory; an interrupted run repeats at most one part.

`cached_vectors` encodes a list of texts in the same way.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.encoding.source import MAX_TEXTS, TextSource, open_source, parts, texts
from aoe_train.encoding.vector_file import (
    PartialOutput,
    Quantization,
    blocks,
    open_partial,
    read_finished,
    read_record,
    write_record,
    write_vectors,
)
from aoe_train.model.quantization import DTYPES, Quantize, value_ranges, width_of
from aoe_train.model.run_folder import OutputResult, add_texts
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import open_in_place, sha256, whole_file, write_errors
from pairkit.base.system.folders import check_same_run
from pairkit.base.system.text_lines import no_such_file

if TYPE_CHECKING:
    import numpy.typing as npt

    from aoe_train.model.encoder import Encoder

NO_QUANTIZATION = Quantization()
_VECTOR = "vector"  # the column of vectors in a table
_STDIN = "-"
_LEVEL = 3  # of zstd; fixed, so that the bytes do not depend on a library's default
_FORMAT = 2  # version of the output; a run doesn't resume one with another format
Embed = Callable[[Iterable[list[str]]], Iterator[np.ndarray]]
"""Maps parts to float32 (text, dim) in order, such as `partial(map, encoder.encode)`."""


@dataclass(frozen=True)
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
        return {**super().to_dict(), "texts_per_s": round(self.texts_per_s, 2)}


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
    if out.exists() and path.exists() and out.samefile(path):
        raise ConfigError(f"{out}: is the input; choose another --out")


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
    with open_partial(out, fresh=fresh) as unfinished:
        file = _input_file(unfinished, path)
        source = open_source(file, columns)
        made_of = {
            "parts": [_FORMAT, MAX_TEXTS],
            "text column": source.column,
            "input": sha256(source.path),
        }
        if source.path != file:
            made_of["sheet"] = file.name
        made_of |= {**settings, **quantization.settings()}

        if out.exists() and not fresh:
            finished = read_finished(out, made_of)
            unfinished.is_resumable = False
            count = finished["texts"]
            return Encoded(
                out, count, finished["dim"], count, 0.0, quantization.quantize
            )

        if unfinished.is_resumable:
            check_same_run(unfinished.folder, unfinished.state.made_of, made_of)
        else:
            count = _count_checked(source, out, quantization)
            out.unlink(missing_ok=True)  # from now on it exists only if it is complete
            unfinished.begin(made_of, count, dim)

        resumed = unfinished.state.done
        _encode_rest(unfinished, texts(source), embed, show, partial(_place, source))
        if unfinished.state.done != unfinished.state.texts:
            raise DataError(
                "was changed while being read; give --fresh to start over",
                path=source.path,
            )
        _finish(unfinished, source, out, quantization)
    state = unfinished.state
    seconds = round(time.monotonic() - start, 3)
    return Encoded(out, state.texts, state.dim, resumed, seconds, quantization.quantize)


def _input_file(unfinished: PartialOutput, path: str | Path) -> Path:
    """The input as a file; standard input is copied into the partial folder."""
    if str(path) != _STDIN:
        return Path(path)
    copy = unfinished.folder / "stdin.txt"
    with write_errors(copy), open_in_place(copy, empty=True) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _count_checked(source: TextSource, out: Path, quantization: Quantization) -> int:
    """The number of texts, after checking that all of them can be encoded and written."""
    count = sum(1 for _ in texts(source))
    if not count:
        raise DataError("has no rows; expected at least one", path=source.path)
    if out.suffix == ".parquet" and _VECTOR in source.schema().names:
        raise ConfigError(
            f"{source.path}: has a column {_VECTOR!r} already; rename it, or write .npy"
        )
    if count == 1 and quantization.needs_ranges:
        raise ConfigError(
            f"{source.path}: one text is not enough to determine the ranges of int8; give --calibration"
        )
    return count


def _place(source: TextSource, number: int) -> dict[str, Any]:
    """The location of a text in its file, for errors."""
    row, _ = next(islice(source.values(), number, None))
    return {"path": source.path, "row": row}


def _encode_rest(
    unfinished: PartialOutput,
    texts: Iterable[str],
    embed: Embed,
    show: Listener,
    place: Callable[[int], dict[str, Any]],
) -> None:
    """Encode the texts whose vectors aren't stored yet; `place` locates a text in errors."""
    start = unfinished.state.done
    total = unfinished.state.texts

    def remaining() -> Iterator[list[str]]:
        texts_read = 0
        for part in parts(texts):
            if texts_read >= start:
                yield part
            texts_read += len(part)

    show(Progress("encode", start, total))
    for vectors in embed(remaining()):
        invalid = ~np.isfinite(vectors).all(axis=1)
        if invalid.any():
            raise DataError(
                "the vector of this text contains NaN or infinity",
                **place(unfinished.state.done + int(invalid.argmax())),
            )
        unfinished.append(vectors)
        show(Progress("encode", unfinished.state.done, total))


def _finish(
    unfinished: PartialOutput,
    source: TextSource,
    out: Path,
    quantization: Quantization,
) -> None:
    """Write the output from all vectors."""
    if quantization.needs_ranges:
        ranges = value_ranges(blocks(unfinished.all_vectors()))
        quantization = Quantization("int8", ranges)
    complete = unfinished.vectors
    if out.suffix == ".parquet":
        complete = unfinished.folder / "table.parquet"
        _write_table(complete, source, unfinished, quantization)
    elif quantization.quantize != "float32":
        complete = unfinished.folder / "codes.npy"
        write_vectors(complete, unfinished, quantization)
    _publish(unfinished, complete, out, quantization)


def _publish(
    unfinished: PartialOutput, complete: Path, out: Path, quantization: Quantization
) -> None:
    """Move the complete file to its place, just after its record."""
    write_record(out, unfinished.state, complete.stat().st_size, quantization)
    with write_errors(out):
        complete.replace(out)
    unfinished.is_resumable = False


def _write_table(
    path: Path,
    source: TextSource,
    unfinished: PartialOutput,
    quantization: Quantization,
) -> None:
    """Write all columns of `source` and the column `vector`, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = source.schema()
    vectors = unfinished.all_vectors()
    width = width_of(vectors.shape[1], quantization.quantize)
    number = pa.from_numpy_dtype(DTYPES[quantization.quantize])
    vector = pa.field(_VECTOR, pa.list_(number, width), nullable=False)
    start = 0
    with (
        whole_file(path) as file,
        pq.ParquetWriter(
            file,
            schema.append(vector),
            compression="zstd",
            compression_level=_LEVEL,
        ) as writer,
    ):
        for table in source.tables(schema):
            block = quantization.apply(vectors[start : start + table.num_rows])
            column = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), width)
            writer.write_table(table.append_column(vector, column))
            start += table.num_rows


def cached_vectors(
    texts: Sequence[str],
    identity: Mapping[str, object],
    prompt: str,
    load: Callable[[], Encoder],
    *,
    normalize: bool | None = None,
    folder: Path,
    show: Listener,
) -> npt.NDArray[np.float32]:
    """The vectors (text, dim), mapped from a file that is named by a hash of texts, model and settings.

    If there is no such file, the model is loaded, and the texts are encoded; interrupted calls resume.
    """
    options: dict[str, Any] = {"prompt": prompt, "normalize": normalize}
    made_of = {"model": dict(identity), **options}
    digest = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode())
    add_texts(digest, texts)
    path = folder / f"vectors-{digest.hexdigest()[:32]}.npy"

    if not path.is_file() or read_record(path) is None:
        encoder = load()
        with open_partial(path, fresh=False) as unfinished:
            path.unlink(missing_ok=True)
            if not unfinished.is_resumable:
                unfinished.begin(made_of, len(texts), encoder.dim)
            _encode_rest(
                unfinished,
                texts,
                partial(map, partial(encoder.encode, **options)),
                show,
                lambda number: {"path": repr(one_line(texts[number], 60))},
            )
            _publish(unfinished, unfinished.vectors, path, NO_QUANTIZATION)
        show(Progress("encode", ended=True))
    return np.asarray(np.load(path, mmap_mode="r"))
