from __future__ import annotations

import torch
from torch.nn import functional

from aoe_train.model.ran import RanConfig
from papers.ran.masked_lm import RanForMaskedLM


def model() -> RanForMaskedLM:
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 30,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 4,
    }
    return RanForMaskedLM(RanConfig(**sizes, window_size=8, min_window_size=3, initializer_range=0.5)).eval()


IDS = torch.randint(1, 30, (3, 12), generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[1] * 12, [1] * 9 + [0] * 3, [1] * 4 + [0] * 8])
LABELS = torch.full_like(IDS, -100)
LABELS[0, [1, 7]], LABELS[1, 8], LABELS[2, 0] = IDS[0, [1, 7]], 5, 9


def test_the_loss_is_the_mean_over_the_labelled_tokens():
    lm = model()
    with torch.no_grad():
        full, sparse = lm(IDS, MASK).logits, lm(IDS, MASK, labels=LABELS)
    expected = functional.cross_entropy(full.flatten(0, 1), LABELS.flatten())
    torch.testing.assert_close(sparse.loss, expected)
    torch.testing.assert_close(sparse.logits, full[LABELS != -100])
    with torch.no_grad():
        torch.testing.assert_close(lm(IDS, MASK, labels=LABELS, num_items_in_batch=8).loss, expected / 2)


def test_without_labels_to_predict_the_loss_is_zero():
    lm = model()
    loss = lm(IDS, MASK, labels=torch.full_like(IDS, -100)).loss
    loss.backward()
    assert loss.item() == 0


def test_embeddings_serve_twice():
    lm = model()
    assert lm.get_output_embeddings().weight is lm.get_input_embeddings().weight
    lm.resize_token_embeddings(40)
    assert lm(IDS, MASK).logits.shape == (3, 12, 40)
