"""In which numbers an output's vectors are, and the file of quantised ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aoe_train.encoding.stored import Vectors, blocks
from aoe_train.model.small import Quantize, dtype_of, quantized, width_of
from pairkit.system.files import open_own, write_errors


@dataclass(frozen=True, slots=True)
class Codes:
    """How vectors are quantised."""

    quantize: Quantize = "float32"
    ranges: np.ndarray | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a number."""
        return dtype_of(self.quantize)

    def width(self, dim: int) -> int:
        """Numbers that a vector of `dim` becomes."""
        return width_of(dim, self.quantize)

    def of(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors float32 (text, dim), quantised."""
        return quantized(vectors, self.quantize, self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """As in an output's record: nothing for float32; `ranges` are the lowest and the highest values."""
        if self.quantize == "float32":
            return {}
        ranges = {} if self.ranges is None else {"ranges": self.ranges.tolist()}
        return {"quantize": self.quantize, **ranges}


def write_codes(path: Path, vectors: Vectors, codes: Codes) -> None:
    """Write all vectors as a `.npy` of codes, block by block."""
    header = {
        "descr": codes.dtype.str,
        "fortran_order": False,
        "shape": (vectors.texts, codes.width(vectors.dim)),
    }
    with write_errors(path), open_own(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks(vectors):
            file.write(codes.of(block).data)
        file.flush()
        os.fsync(file.fileno())
