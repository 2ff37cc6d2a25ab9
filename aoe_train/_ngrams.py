"""N-gram features of token vectors, before the pooling: what IS-BERT puts behind a backbone.

Zhang et al., EMNLP 2020, arXiv 2009.12061, Section 3: a filter of width k over neighbouring tokens gives
ReLU(w . h_(i : i+k-1) + b), and the features of all widths stand side by side, as many as a token has
numbers. Beyond the ends of a text there are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from aoe_train._heads import read_weights, write_weights

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

_FOLDER = "ngrams"


class NGrams(nn.ModuleList):
    """Filters over packed tokens; in float32, as dense layers are.

    Args:
        widths: Tokens that a filter sees, an odd number each.
        dim: Numbers of a token, before and after.
    """

    def __init__(self, widths: Sequence[int], dim: int) -> None:
        share, more = divmod(dim, len(widths))
        sizes = [share + (place < more) for place in range(len(widths))]
        super().__init__(
            nn.Conv1d(dim, size, width, padding=width // 2) for size, width in zip(sizes, widths, strict=True)
        )
        self._gap = max(widths) // 2

    def forward(
        self, tokens: Float[Tensor, "token dim"], lengths: Int[Tensor, " piece"]
    ) -> Float[Tensor, "token dim"]:
        """Features of each token, of no piece but its own."""
        pieces = torch.arange(len(lengths), device=tokens.device)
        owners = torch.repeat_interleave(pieces, lengths, output_size=len(tokens))
        places = torch.arange(len(tokens), device=tokens.device) + owners * self._gap
        # Pieces lie so far apart in one row that no filter sees two of them.
        apart = tokens.new_zeros(len(tokens) + len(lengths) * self._gap, tokens.shape[1], dtype=torch.float32)
        row = apart.index_copy(0, places, tokens.float()).T[None]
        with torch.autocast(tokens.device.type, enabled=False):
            found = torch.cat([convolve(row) for convolve in self], dim=1)
        return torch.relu(found[0].T[places])


def read_ngrams(folder: Path, widths: Sequence[int], dim: int) -> NGrams:
    """The filters of a model folder of ours.

    Raises:
        DataError: Weights that are damaged, not there, or of another shape.
    """
    with torch.device("meta"):
        found = NGrams(widths, dim)
    read_weights(found, folder / _FOLDER)
    return found


def write_ngrams(folder: Path, ngrams: NGrams) -> None:
    """Write them into a model's folder."""
    write_weights(ngrams, folder / _FOLDER)
