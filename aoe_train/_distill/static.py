"""From a model and unlabelled texts to a static model's folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from aoe_train._distill.least_squares import RIDGE, fit, rarity
from aoe_train._distill.vocabulary import plain_tokenizer, token_shares, written_tokens
from aoe_train._objectives.distillation import principal_axes
from aoe_train._similarity import scaled_to_one
from pairkit.errors import DataError
from pairkit.keyed import keyed_hash
from pairkit.progress import Listener, Progress

if TYPE_CHECKING:
    from jaxtyping import Float
    from tokenizers import Tokenizer

    from aoe_train._encoder import Encoder

Embed = Callable[[list[str]], "Float[np.ndarray, 'text dim']"]
_FEWEST = 100
_HELD_OUT, _MOST_HELD_OUT = 20, 2000  # one text of so many, and at most


@dataclass(frozen=True)
class Distilled:
    """What a static model was made from.

    Attributes:
        out: Its folder.
        tokens: How many have a vector.
        dim: Numbers of a vector.
        texts: How many it was fitted on.
        seen: Tokens that stand in these; the others have what the model says of them alone.
        held_out: Texts that it was not fitted on.
        agreement: The mean cosine of its vectors of these and the model's.
    """

    out: Path
    tokens: int
    dim: int
    texts: int
    seen: int
    held_out: int
    agreement: float

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe distill --json`."""
        return {**asdict(self), "out": str(self.out)}


@dataclass(frozen=True)
class Static:
    """A tokenizer and a vector for each of its tokens, float32 (token, dim)."""

    tokenizer: Tokenizer
    table: Float[np.ndarray, "token dim"]

    def encode(self, texts: Sequence[str]) -> Float[np.ndarray, "text dim"]:
        """Vectors of length 1; of a text without tokens 0."""
        return scaled_to_one(token_shares(self.tokenizer, texts) @ self.table)


def distil(
    encoder: Encoder, embed: Embed, texts: Sequence[str], out: Path, dim: int, show: Listener
) -> tuple[Static, Distilled]:
    """Fit a vector for each token of a model.

    Args:
        encoder: The model, which says how texts become tokens.
        embed: Gives its vectors, float32 (text, dim) of any length; the default prompt goes with them.
        texts: Distinct ones, of the kind that the static model is for.
        out: Where it will stand.
        dim: Numbers of a vector, at most the model's; by principal axes where less.
        show: Told of progress.

    Raises:
        ConfigError: The model's tokenizer can't be one of a static model.
        DataError: Too few texts, or vectors that are no numbers.
    """
    kept, fitted = held_out(texts)
    if len(fitted) < _FEWEST:
        raise DataError(
            f"distillation: found {len(texts):,} texts; give at least {_FEWEST + 10:,}, of the kind that the"
            " model is for, and some 20,000 for a good one"
        )
    plain = plain_tokenizer(encoder.tokenizer)
    alone = written_tokens(encoder.tokenizer, plain)
    written = [place for place, token in enumerate(alone) if token]
    every = [*fitted, *kept, *(alone[place] for place in written)]
    vectors = embed(every)
    if not np.isfinite(vectors).all():
        raise DataError("distillation: some of the model's vectors are no numbers; check the model")
    vectors = scaled_to_one(vectors)
    wanted, judged, lone = np.split(vectors, [len(fitted), len(fitted) + len(kept)])
    axes = kept_axes(wanted, dim)
    prior = np.zeros((len(alone), vectors.shape[1]), np.float32)
    prior[written] = lone - lone.mean(axis=0)
    shares = token_shares(plain, fitted, _window(encoder))
    prior *= rarity(shares)[:, None].astype(np.float32)
    table = fit(
        shares, wanted @ axes, prior @ axes, RIDGE, lambda number: show(Progress("fit tokens", number))
    )
    show(Progress("fit tokens", ended=True))
    static = Static(plain, table.astype(np.float32))
    near = (static.encode(kept) * scaled_to_one(judged @ axes)).sum(axis=1)
    seen = int(np.unique(shares.indices).size)
    return static, Distilled(out, len(table), dim, len(fitted), seen, len(kept), float(near.mean()))


def held_out(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """A few of the texts, whatever their order, and the others."""
    ranked = sorted(range(len(texts)), key=lambda place: keyed_hash(0, texts[place]))
    count = min(len(texts) // _HELD_OUT, _MOST_HELD_OUT)
    kept = set(ranked[:count])
    return [texts[place] for place in sorted(kept)], [
        text for place, text in enumerate(texts) if place not in kept
    ]


def kept_axes(vectors: Float[np.ndarray, "text wide"], dim: int) -> Float[np.ndarray, "wide dim"]:
    """The first of the vectors' principal axes; all directions as they are where all are kept."""
    wide = vectors.shape[1]
    if dim == wide:
        return np.eye(wide, dtype=np.float32)
    axes: np.ndarray = principal_axes(torch.from_numpy(vectors))[:, :dim].numpy()
    return axes


def _window(encoder: Encoder) -> int | None:
    """How many tokens of a text the model sees, special ones aside; None for all."""
    longest = encoder.settings.max_length
    special = encoder.tokenizer.num_special_tokens_to_add()
    return None if longest is None else max(longest - special, 1)
