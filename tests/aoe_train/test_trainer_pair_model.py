"""Chunks change memory, not gradients; packed texts are cut where they end."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from aoe_train.objectives.objective import make_objective
from aoe_train.objectives.settings import ObjectiveSettings, Weights
from aoe_train.training.pair_model import PairModel, split_texts
from aoe_train.training.plan import saved_bytes
from tests.aoe_train.two_ranks import WORDS, AllPairs, Bag, batch


class Dropped(nn.Module):
    """A text model whose vectors depend on random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = Bag()

    def forward(self, input_ids: Tensor, lengths: np.ndarray, pieces: np.ndarray) -> Tensor:
        return torch.dropout(self.bag(input_ids, lengths, pieces), 0.5, train=True)


def gradients(model: PairModel) -> dict[str, Tensor]:
    torch.manual_seed(7)
    model.zero_grad()
    model(**batch(0, 0, 1))["loss"].backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


def models(kind: type[nn.Module], chunk: int | None) -> PairModel:
    torch.manual_seed(0)
    return PairModel(kind(), AllPairs(), chunk=chunk).double()


def test_chunks_leave_the_gradients_as_they_are() -> None:
    whole = gradients(models(Bag, None))
    for chunk in (1, 5, 16, 99):
        torch.testing.assert_close(gradients(models(Bag, chunk)), whole)


def test_chunks_leave_the_gradients_of_every_size_as_they_are() -> None:
    def made(chunk: int | None) -> PairModel:
        torch.manual_seed(0)
        wanted = ObjectiveSettings(weights=Weights(cosine=1, angle=1), dims=(6, 4, 2))
        objective = make_objective(wanted, dim=6, kind="graded", label_range=(0, 1))
        return PairModel(Bag(), objective, chunk=chunk).double()

    for chunk in (1, 5):
        torch.testing.assert_close(gradients(made(chunk)), gradients(made(None)))


def test_the_backbone_runs_once_for_all_sizes() -> None:
    runs = []
    wanted = ObjectiveSettings(weights=Weights(cosine=1), dims=(6, 4, 2))
    trained = PairModel(Bag(), make_objective(wanted, dim=6, kind="graded", label_range=(0, 1))).double()
    trained.text_model.register_forward_hook(lambda *_: runs.append(1))
    trained(**batch(0, 0, 1))["loss"].backward()
    assert len(runs) == 1


def test_a_chunk_is_embedded_again_with_the_same_dropout() -> None:
    class ByHand(PairModel):
        def embed(self, input_ids: Tensor, lengths: np.ndarray, pieces: np.ndarray) -> Tensor:
            parts = split_texts(input_ids, lengths, pieces, 5)
            return torch.cat([self.text_model(*part) for part in parts])

    torch.manual_seed(0)
    by_hand = ByHand(Dropped(), AllPairs()).double()
    torch.testing.assert_close(gradients(models(Dropped, 5)), gradients(by_hand))


@given(
    pieces=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=9),
    size=st.integers(1, 10),
)
def test_split_texts_keeps_every_text_whole(pieces: list[list[int]], size: int) -> None:
    lengths = np.array([length for text in pieces for length in text])
    ids = torch.arange(int(lengths.sum()))
    counts = np.array([len(text) for text in pieces])
    parts = list(split_texts(ids, lengths, counts, size))
    assert [len(part[2]) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert all(len(part[0]) == int(part[1].sum()) and len(part[1]) == int(part[2].sum()) for part in parts)
    for place, whole in enumerate((ids, lengths, counts)):
        assert np.array_equal(np.concatenate([part[place] for part in parts]), whole)


def test_saved_bytes_counts_what_backward_needs() -> None:
    class Square(nn.Module):
        def forward(self, input_ids: Tensor, lengths: np.ndarray, pieces: np.ndarray) -> Tensor:
            return self.weight(input_ids.double()[:, None]).square()[: len(pieces)]

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Linear(1, 4)

    class Sum(nn.Module):
        def forward(
            self, vectors: Tensor, labels: Tensor | None, texts: Tensor, *_: object
        ) -> dict[str, Tensor]:
            return {"loss": vectors.sum()}

    ids = torch.arange(1000) % WORDS
    one = np.ones(1000, dtype=np.int64)
    found = {"input_ids": ids, "lengths": one, "pieces": one, "rows": torch.tensor([[0, 1]])}
    found["texts"] = ids
    kept = saved_bytes(PairModel(Square(), Sum()).double(), found)
    # `square` saves 1000 x 4 and `linear` 1000 x 1, in float64; indexing saves its few rows.
    assert 8 * 5000 <= kept <= 8 * 5100
    in_chunks = saved_bytes(PairModel(Square(), Sum(), chunk=100).double(), found)
    assert in_chunks < kept
