from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from aoe_train.objectives.pairs import as_pairs
from aoe_train.objectives.settings import Weights
from aoe_train.records import ABSENT


def test_triplets_are_cut_into_pairs_with_the_anchor_by_hand() -> None:
    texts = torch.tensor([[10, 11, 12], [20, 21, 22]])
    vectors = texts[:, :, None].float()
    pairs = as_pairs(vectors, None, texts)
    assert pairs.texts.tolist() == [[10, 11], [20, 21], [10, 12], [20, 22]]
    assert pairs.first.flatten().tolist() == [10, 20, 10, 20]
    assert pairs.second.flatten().tolist() == [11, 21, 12, 22]
    assert pairs.labels.tolist() == [1, 1, 0, 0]
    assert pairs.anchors == 2


def test_every_negative_makes_a_pair_by_hand() -> None:
    texts = torch.tensor([[10, 11, 12, 13], [20, 21, 22, ABSENT]])
    pairs = as_pairs(texts[:, :, None].float(), None, texts)
    assert pairs.texts.tolist() == [[10, 11], [20, 21], [10, 12], [20, 22], [10, 13], [20, ABSENT]]
    assert pairs.labels.tolist() == [1, 1, 0, 0, 0, 0]
    assert pairs.present.tolist() == [True, True, True, True, True, False]
    assert pairs.anchors == 2


@pytest.mark.parametrize("part", sorted(Weights(cosine=1).model_dump()))
def test_no_part_has_a_negative_weight(part: str) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Weights(**{part: -0.5})
