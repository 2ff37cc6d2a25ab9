"""Distils a model into a static model, with unlabelled texts.

The token vectors are fitted by ridge regression: the mean over a text's tokens should equal the model's vector
of the text. They start from a prior, the model's vector of each token on its own, weighted by rarity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy import ndarray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from aoe_train.evaluation.overlap import digests, write_digests
from aoe_train.exporting.usage_card import (
    SENTENCE_TRANSFORMERS_USAGE,
    exported_card_head,
)
from aoe_train.model.encoder_settings import write_static
from aoe_train.model.run_folder import OutputResult
from aoe_train.model.similarity import scaled_to_one
from aoe_train.objectives.distillation import principal_axes
from pairkit import __version__
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.base.system.seeded import keyed_hash

if TYPE_CHECKING:
    from jaxtyping import Float
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    from aoe_train.model.encoder import Encoder


_TEXTS_AT_ONCE = 1 << 12  # that are tokenised
# One of 20 texts is held out, and at most 2000.
_HELD_OUT = 20
_MAX_HELD_OUT = 2000
_MIN_TEXTS = 105  # 100 to fit, and 5 held out
RIDGE = 0.03
# The smoothing `a` of `rarity`.
_SIF = 1e-3
# The solver stops at this residual, relative to the first, or after this many steps.
_TOLERANCE = 1e-3
_MAX_STEPS = 100
_CARD = """
A static model: a text's vector is the mean of its tokens' vectors, scaled to length 1. It was distilled from
{model} on {texts:,} texts without labels, and has vectors of {tokens:,} tokens, {seen:,} of which occur in
these texts. On {held_out:,} held-out texts, the mean cosine of its vectors and the model's {axes}is
{agreement:.3f}.
"""


@dataclass(frozen=True)
class Distilled(OutputResult):
    """The result of a distillation.

    Attributes:
        out: The folder.
        tokens: Number of tokens with a vector.
        dim: Dimensions of a vector.
        texts: Number of texts that it was fitted on.
        seen: Tokens that occur in these texts; vectors of others derive from the model's vector of the token.
        held_out: Number of held-out texts.
        agreement: The mean cosine of its vectors and the model's on held-out texts.
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
            f" held-out texts, its vectors have a mean cosine of {self.agreement:.3f} with the model's"
        ]


@dataclass(frozen=True)
class Static:
    """A tokenizer and the vectors of its tokens, float32 (token, dim)."""

    tokenizer: Tokenizer
    table: Float[ndarray, "token dim"]

    def encode(self, texts: Sequence[str]) -> Float[ndarray, "text dim"]:
        """Vectors of length 1; zero for texts without tokens."""
        return scaled_to_one(token_shares(self.tokenizer, texts) @ self.table)


def distil(
    encoder: Encoder,
    embed: Callable[[list[str]], ndarray],
    texts: Sequence[str],
    out: Path,
    dim: int,
    show: Listener,
) -> tuple[Static, Distilled]:
    """Fit a vector for each token of a model."""
    if len(texts) < _MIN_TEXTS:
        raise DataError(
            f"distillation: found {len(texts):,} texts; expected at least {_MIN_TEXTS:,}, similar to those"
            " that the model will encode, and about 20,000 for a good model"
        )
    test_texts, fitted = held_out(texts)
    plain = plain_tokenizer(encoder.tokenizer)
    token_texts = written_tokens(encoder.tokenizer, plain)
    with_text = [token for token, text in enumerate(token_texts) if text]
    written = [token_texts[token] for token in with_text]
    targets, expected, of_tokens = _unit_vectors(embed, [fitted, test_texts, written])

    shares = token_shares(plain, fitted, _max_content(encoder))
    prior = np.zeros((len(token_texts), targets.shape[1]), np.float32)
    prior[with_text] = of_tokens - of_tokens.mean(axis=0)
    prior *= rarity(shares)[:, None].astype(np.float32)
    if dim < targets.shape[1]:
        axes = principal_axes(torch.from_numpy(targets))[:, :dim].numpy()
        targets = targets @ axes
        prior = prior @ axes
        expected = scaled_to_one(expected @ axes)
    table = fit(shares, targets, prior, step=lambda: show(Progress("fit tokens")))
    show(Progress("fit tokens", ended=True))

    static = Static(plain, table)
    cosines = (static.encode(test_texts) * expected).sum(axis=1)
    result = Distilled(
        out,
        tokens=len(table),
        dim=dim,
        texts=len(fitted),
        seen=int(np.unique(shares.indices).size),
        held_out=len(test_texts),
        agreement=float(cosines.mean()),
    )
    return static, result


def write(
    static: Static,
    result: Distilled,
    *,
    model: str,
    source: Path | None,
    full_dim: int,
    texts: Iterable[str],
    made_of: object,
) -> None:
    """Write the folder; it is complete or absent."""
    name = result.out.name
    axes = "" if result.dim == full_dim else f"on their {result.dim} principal axes "
    card = None if source is None else source / "README.md"
    head = exported_card_head(name, result.dim, tags=["static"], source=card)
    body = _CARD.format(**asdict(result), model=model, axes=axes)
    use = SENTENCE_TRANSFORMERS_USAGE.format(name=name, flag=', device="cpu"')
    facts = asdict(result) | {
        "out": name,
        "model": model,
        "version": __version__,
        "made_of": made_of,
    }
    with whole_folder(result.out) as folder:
        write_static(folder, static.tokenizer.to_str(), static.table)
        write_digests(folder, digests(texts), source)
        write_text(folder / "README.md", head + body + use)
        write_json(folder / "run.json", {"distill": facts})


def held_out(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Hold out texts by their hash, independent of their order; returns these and the others."""
    ranked = sorted(range(len(texts)), key=lambda index: keyed_hash(0, texts[index]))
    count = min(len(texts) // _HELD_OUT, _MAX_HELD_OUT)
    chosen = set(ranked[:count])
    test_texts = [texts[index] for index in sorted(chosen)]
    others = [text for index, text in enumerate(texts) if index not in chosen]
    return test_texts, others


def _max_content(encoder: Encoder) -> int | None:
    """The number of a text's tokens that the model reads, without special tokens; None: all."""
    longest = encoder.settings.max_length
    if longest is None:
        return None
    return max(longest - encoder.tokenizer.num_special_tokens_to_add(), 1)


def _unit_vectors(
    embed: Callable[[list[str]], ndarray], lists: Sequence[list[str]]
) -> list[Float[ndarray, "text dim"]]:
    """The vectors of each list of texts, scaled to length 1."""
    vectors = embed([text for texts in lists for text in texts])
    if not np.isfinite(vectors).all():
        raise DataError(
            "distillation: some of the model's vectors contain NaN or infinity; check the model"
        )
    ends = np.cumsum([len(texts) for texts in lists])
    return np.split(scaled_to_one(vectors), ends[:-1])


def plain_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """The content of tokenizer.json without truncation and padding."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ConfigError(
            f"{type(tokenizer).__name__} has no tokenizer.json, which a static model needs; use another model"
        )
    plain: Tokenizer = type(backend).from_str(backend.to_str())
    plain.no_truncation()
    plain.no_padding()
    return plain


def token_count(tokenizer: Tokenizer) -> int:
    """One more than the highest token id."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def token_shares(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    longest: int | None = None,
) -> sparse.csr_matrix:
    """The relative frequency of each token in each text, float32 (text, token)."""
    ids = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        block = list(texts[start : start + _TEXTS_AT_ONCE])
        encodings = tokenizer.encode_batch_fast(block, add_special_tokens=False)
        ids += [np.asarray(encoding.ids[:longest], np.int32) for encoding in encodings]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    share = 1 / np.maximum(lengths, 1)
    shares = np.repeat(share, lengths).astype(np.float32)
    columns = np.concatenate([*ids, np.empty(0, np.int32)])
    starts = np.concatenate([[0], lengths.cumsum()])
    shape = (len(ids), token_count(tokenizer))
    matrix = sparse.csr_matrix((shares, columns, starts), shape)
    matrix.sum_duplicates()
    return matrix


def written_tokens(tokenizer: PreTrainedTokenizerFast, plain: Tokenizer) -> list[str]:
    """The text of each token by id; empty for special tokens, white space and incomplete characters."""
    special = set(tokenizer.all_special_ids)
    prefix = getattr(plain.model, "continuing_subword_prefix", None) or ""
    texts = plain.decode_batch([[token] for token in range(token_count(plain))])
    written = []
    for token, text in enumerate(texts):
        if token in special or "\ufffd" in text:
            written.append("")
        else:
            written.append(text.strip().removeprefix(prefix))
    return written


def rarity(shares: sparse.csr_matrix) -> Float[ndarray, " token"]:
    """Each token's weight a / (a + p), with its frequency p and a = 0.001 (SIF: Arora et al., 2017)."""
    counts = np.asarray(shares.sum(axis=0), np.float64).ravel()
    frequencies = counts / max(counts.sum(), 1.0)
    weights: ndarray = _SIF / (_SIF + frequencies)
    return weights


def fit(
    shares: sparse.csr_matrix,
    targets: Float[ndarray, "text dim"],
    prior: Float[ndarray, "token dim"],
    ridge: float = RIDGE,
    step: Callable[[], None] = lambda: None,
) -> Float[ndarray, "token dim"]:
    """Token vectors, float32: ridge regression towards the optimally scaled prior."""
    predicted = shares @ prior
    square = float((predicted * predicted).sum())
    scale = 0.0
    if square:
        scale = float((predicted * targets).sum()) / square
    start = prior * np.float32(scale)
    residual = shares.T @ (targets - shares @ start)

    def product(flat: ndarray) -> ndarray:
        change = flat.reshape(residual.shape)
        fitted = shares.T @ (shares @ change)
        return np.asarray(fitted + np.float32(ridge) * change).ravel()

    normal = LinearOperator((residual.size, residual.size), product, dtype=np.float32)
    change, _ = cg(
        normal,
        residual.ravel(),
        rtol=_TOLERANCE,
        maxiter=_MAX_STEPS,
        callback=lambda _: step(),
    )
    vectors: ndarray = start + change.reshape(residual.shape)
    return vectors
