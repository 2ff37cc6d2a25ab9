"""From a model and unlabelled texts to a static model's folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from aoe_train.evaluation.overlap import write_digests
from aoe_train.exporting.card import card_data, head
from aoe_train.model.interchange import write_static
from aoe_train.model.similarity import scaled_to_one
from aoe_train.objectives.distillation import principal_axes
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener, Progress
from pairkit.system.files import whole_folder, write_json, write_text
from pairkit.system.seeded import keyed_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jaxtyping import Float
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    from aoe_train.model.encoder import Encoder


_CARD = """
A static model: each token has a vector, and a text's vector is the mean of its tokens', scaled to length 1.
It was distilled from {model} on {texts:,} texts without labels, with a vector for each of {tokens:,} tokens,
{seen:,} of which stand in these texts. On {held_out:,} texts that it was not fitted on, the mean cosine of
its vectors and the model's {about}is {agreement:.3f}.

## Use
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}", device="cpu")
vectors = model.encode(["A man is playing a flute.", "Someone plays an instrument."])
```
"""


def write(
    static: Static, done: Distilled, *, model: str, source: Path, wide: int, texts: Iterable[str]
) -> None:
    """Write the folder, whole or not at all."""
    name = done.out.name
    card = source / "README.md"
    about = card_data(card) if card.is_file() else {}
    words = _CARD.format(
        **asdict(done),
        model=model,
        name=name,
        about="" if done.dim == wide else f"on their {done.dim} principal axes ",
    )
    facts = {**asdict(done), "out": name, "model": model, "version": __version__}
    with whole_folder(done.out) as folder:
        write_static(folder, static.tokenizer.to_str(), static.table)
        write_digests(folder, texts)
        write_text(folder / "README.md", head(name, done.dim, tags=["static"], about=about) + words)
        write_json(folder / "run.json", {"distilled": facts})


_AT_ONCE = 1 << 12  # texts


def plain_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """A tokenizer's own kind of file, which cuts and pads no text."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ConfigError(
            f"{type(tokenizer).__name__}: has no tokenizer.json, which a static model's folder consists of"
        )
    plain: Tokenizer = type(backend).from_str(backend.to_str())
    plain.no_truncation()
    plain.no_padding()
    return plain


def token_count(tokenizer: Tokenizer) -> int:
    """One more than the highest id, be there gaps between them."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def token_shares(tokenizer: Tokenizer, texts: Sequence[str], longest: int | None = None) -> sparse.csr_matrix:
    """What share of a text's tokens each token is, float32 (text, token); rows of texts without any are 0."""
    ids: list[np.ndarray] = []
    for start in range(0, len(texts), _AT_ONCE):
        part = list(texts[start : start + _AT_ONCE])
        found = tokenizer.encode_batch_fast(part, add_special_tokens=False)
        ids.extend(np.asarray(encoding.ids[:longest], np.int32) for encoding in found)
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    shares = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
    columns = np.concatenate([*ids, np.empty(0, np.int32)])
    starts = np.concatenate([[0], lengths.cumsum()])
    matrix = sparse.csr_matrix((shares, columns, starts), (len(ids), token_count(tokenizer)))
    matrix.sum_duplicates()
    return matrix


def written_tokens(tokenizer: PreTrainedTokenizerFast, plain: Tokenizer) -> list[str]:
    """Each token as text, by its id; empty for special ones and for those that are no text of their own.

    The latter are blanks and parts of a character's bytes.
    """
    special = set(tokenizer.all_special_ids)
    mark = getattr(plain.model, "continuing_subword_prefix", None) or ""
    texts = plain.decode_batch([[token] for token in range(token_count(plain))])
    return [
        "" if token in special or "\ufffd" in text else text.strip().removeprefix(mark)
        for token, text in enumerate(texts)
    ]


RIDGE = 0.03
_RARE = 1e-3
_ENOUGH = 1e-3  # of the first residual's length
_MOST_STEPS = 100


def rarity(shares: sparse.csr_matrix) -> Float[np.ndarray, " token"]:
    """Each token's weight a / (a + p), p being its share of all, with a = 0.001 (Arora et al., 2017: SIF)."""
    counts = np.asarray(shares.sum(axis=0), np.float64).ravel()
    weights: np.ndarray = _RARE / (_RARE + counts / max(counts.sum(), 1.0))
    return weights


def fit(
    shares: sparse.csr_matrix,
    wanted: Float[np.ndarray, "text dim"],
    prior: Float[np.ndarray, "token dim"],
    ridge: float = RIDGE,
    step: Callable[[], None] = lambda: None,
) -> Float[np.ndarray, "token dim"]:
    """The tokens' vectors, float32: ridge regression towards the prior, at its best scale."""
    meant = shares @ prior
    known = float((meant * meant).sum())
    start = prior * np.float32(float((meant * wanted).sum()) / known if known else 0.0)
    residual = shares.T @ (wanted - shares @ start)

    def product(flat: np.ndarray) -> np.ndarray:
        moved = flat.reshape(residual.shape)
        return np.asarray(shares.T @ (shares @ moved) + np.float32(ridge) * moved).ravel()

    normal = LinearOperator((residual.size, residual.size), product, dtype=np.float32)
    moved, _ = cg(normal, residual.ravel(), rtol=_ENOUGH, maxiter=_MOST_STEPS, callback=lambda _: step())
    found: np.ndarray = start + moved.reshape(residual.shape)
    return found


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

    def notes(self) -> list[str]:
        """Tokens, texts and agreement with the model."""
        return [
            f"{self.tokens:,} tokens, {self.seen:,} of them in {self.texts:,} texts; on {self.held_out:,}"
            f" others its vectors have a mean cosine of {self.agreement:.3f} with the model's"
        ]

    def tables(self) -> list[str]:
        """The folder."""
        return [str(self.out)]

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to evaluate it."""
        return [("evaluate it", ["aoe", "evaluate", "--model", str(self.out), "--data", "PAIRS"])]

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
    """Fit a vector for each token of a model."""
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
    table = fit(shares, wanted @ axes, prior @ axes, step=lambda: show(Progress("fit tokens")))
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
