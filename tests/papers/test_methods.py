"""The methods: losses by hand, each trained, killed and continued, and read again from its folder."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import aoe_train
from aoe_train import TextBatch
from papers.methods import NAMES, method
from papers.methods.consert import features_cut, shuffled, without_dropout
from papers.methods.ct import tension_loss
from papers.methods.infersent import classes, features
from papers.methods.isbert import NGrams, information_loss
from papers.methods.objectives import Phase, in_batch_angle_emb, phase_similarity
from papers.methods.promptbert import fill_template, template_bias, templates
from papers.methods.word_vectors import write_bilstm
from tests.aoe_train.conftest import Killed
from tests.aoe_train.tiny import WORDS, card_of, load, save_generator, save_words
from tests.support.shorthand import (
    approx,
    config_error,
    module_fixture,
    parametrize,
    raises,
    remote_error,
    table,
)


def softplus(x):
    return math.log1p(math.exp(x))


def batch_of(*lengths):
    """Texts of [CLS], so many tokens, and [SEP]."""
    tokens = []
    for row, length in enumerate(lengths, start=1):
        tokens += [2, *range(10 * row, 10 * row + length), 3]
    counts = np.array(lengths) + 2
    numbers = torch.arange(len(lengths))
    return TextBatch(torch.tensor(tokens), counts, None, numbers, numbers[:, None])


def own(batch):
    return ~torch.isin(batch.input_ids, torch.tensor([2, 3]))


def begun(name, encoder, kind="single", **options):
    made = method(name, **options)
    made.begin(encoder, kind)
    return made


@module_fixture
def texts():
    words = random.Random(4)
    return [" ".join(words.sample(WORDS, words.randint(3, 9))) for _ in range(16)]


@parametrize("name", sorted({*NAMES} - {"angle-phase", "in-batch-angle-emb"}))
def test_a_killed_training_continues_to_the_same_weights(
    name, texts, shallow, tmp_path, kill_at
):
    data = texts
    backbone, options = shallow, {}
    if name in ("infersent", "consert-joint"):
        data = [
            {"text1": a, "text2": b, "label": n % 2}
            for n, (a, b) in enumerate(itertools.pairwise(texts))
        ]
    if name == "infersent":
        backbone = tmp_path / "bilstm"
        write_bilstm(save_words(tmp_path / "words.txt"), backbone, size=8)
    if name == "diffcse":
        options = {"generator": str(tmp_path / "generator")}
        save_generator(shallow, tmp_path / "generator")

    def made():
        return method(name, **options)

    def train(out):
        settings = {
            "log.checkpoint_steps": 2,
            "optim.lr": 1e-3,
            "encoder": dict(made().encoder),
        }
        how = {"batch_size": 8, "epochs": 2, "settings": settings}
        return aoe_train.train(
            data, backbone=backbone, out=tmp_path / out, objective=made(), **how
        )

    whole = train("whole")
    assert whole.steps == 4
    assert all(np.isfinite(entry["loss"]) for entry in whole.history)
    assert made().__class__.__name__ in card_of(tmp_path / "whole")
    kill_at(3)
    with raises(Killed):
        train("killed")
    train("killed")
    files = [path.name for path in (tmp_path / "whole").glob("*.safetensors")]
    assert ("ngrams.safetensors" in files) == (name == "isbert")
    for file in files:
        expected = load_file(tmp_path / "whole" / file)
        assert_close(load_file(tmp_path / "killed" / file), expected, rtol=0, atol=0)
    encoder = load(tmp_path / "whole", inference_only=True)
    read = made().reader(encoder, tmp_path / "whole")
    assert read(texts[:3]).shape == (3, encoder.dim)
    assert read(texts)[:3] == approx(read(texts[:3]), abs=1e-5)  # whatever the batch


@table(
    """
    name, kind, given, words
    diffcse | single | {'dense': [8]} | remove encoder.dense
    consert | single | {'prompts': {'query': 'q: '}} | remove the prompts
    infersent | binary | {} | expected a BiLSTM over word vectors
    infersent | positive | {} | found positive rows, expected
    consert-joint | single | {} | found single rows, expected binary or triplet rows
    ct | positive | {} | found positive rows, expected
    bow | single | {} | method 'bow': expected one of
    """,
)
def test_unsuitable_models_and_rows_are_refused(name, kind, given, words, shallow):
    options = {"generator": "none"} if name == "diffcse" else {}
    with config_error(words):
        begun(name, load(shallow, **given), kind, **options)


def test_ct_by_hand():
    first = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    second = torch.tensor([[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    # Scores: [[1, 0, 2], [2, 2, 0], [2, 1, 2]]; one negative each: (0, 1), (1, 2), (2, 0)
    same = softplus(-1) + softplus(-2) + softplus(-2)
    other = softplus(0) + softplus(0) + softplus(2)
    every = other + softplus(2) + softplus(2) + softplus(1)
    for negatives, expected in ((1, (same + other) / 6), (7, (same + every) / 9)):
        found = tension_loss(first, second, torch.arange(3), negatives)
        assert found.item() == approx(expected)
    copies = tension_loss(first[[0, 0]], first[[0, 0]], torch.tensor([4, 4]), 7)
    assert copies.item() == approx(softplus(-1))  # a copy of a text is not a negative


def test_isbert_by_hand():
    # Two tokens of one text, one of the other.
    local = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    vectors = torch.tensor([[1.0, 1.0], [3.0, 0.0]])
    # Scores: own 1, 2 and 3; others' 3, 0 and 2
    same = (softplus(-1) + softplus(-2) + softplus(-3)) / 3
    others = (softplus(3) + softplus(0) + softplus(2)) / 3
    owners = torch.tensor([0, 0, 1])
    for ids, expected in (([0, 1], same + others), ([4, 4], same)):  # copies: no others
        found = information_loss(local, vectors, owners, torch.tensor(ids))
        assert found.item() == approx(expected)


def test_ngrams_of_a_text_do_not_depend_on_other_texts():
    torch.manual_seed(0)
    filters, tokens = NGrams([1, 3, 5], 8), torch.randn(7, 8)
    together = filters(tokens, torch.tensor([0, 0, 0, 1, 2, 2, 2]))
    parts = tokens.split([3, 1, 3])
    alone = [filters(part, torch.zeros(len(part)).long()) for part in parts]
    assert_close(together, torch.cat(alone))
    width = filters[1]  # of three tokens: ReLU(w . h + b), zeros beyond the ends
    padded = torch.cat([torch.zeros(1, 8), tokens[:3], torch.zeros(1, 8)])
    expected = torch.relu((width.weight * padded[0:3].T[None]).sum((1, 2)) + width.bias)
    assert_close(together[0, 3:6], expected)


def test_views_of_consert(bert):
    torch.manual_seed(0)
    batch = batch_of(3, 9, 9)
    mixed = shuffled(batch, own(batch))
    assert not torch.equal(mixed.input_ids, batch.input_ids)
    for before, after in zip(batch.sequences(), mixed.sequences(), strict=True):
        assert sorted(after.tolist()) == sorted(before.tolist())
        assert (after[0], after[-1]) == (2, 3)
    model = load(bert).model.train()
    with without_dropout(model):
        one, other = batch.vectors(model), batch.vectors(model)
    assert torch.equal(one, other)
    assert one.requires_grad
    assert model.training


@parametrize("packing", [True, False])
def test_feature_cutoff_is_the_same_for_all_tokens_of_a_text(packing, bert):
    model = load(bert, packing=packing).model
    seen = []
    batch = batch_of(2, 5, 5)
    torch.manual_seed(1)
    with features_cut(model, batch.lengths, 0.5):
        handle = model.backbone.encoder.register_forward_pre_hook(
            lambda _, given: seen.append(given[0])
        )
        batch.vectors(model)
        handle.remove()
    states = seen[0] if not packing else torch.split(seen[0][0], batch.lengths.tolist())
    for state, length in zip(states, batch.lengths, strict=True):
        zero = state[:length] == 0
        assert (zero == zero[0]).all()
        assert 4 <= zero[0].sum() <= 28


def test_infersent_by_hand():
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0])
    assert features(one, other).tolist() == [1, 2, 3, -1, 2, 3, 3, -2]
    absent = torch.tensor([[4, 5, -1]])
    assert classes(absent, torch.tensor([1.0, 0])).tolist() == [[1], [0]]
    assert classes(absent, None).tolist() == [[1, 0, -100]]


def test_promptbert_reads_texts_within_its_templates(bert):
    encoder = load(bert, max_length=40)
    first, _ = templates(encoder)
    mask = encoder.tokenizer.mask_token_id
    within = fill_template(batch_of(2, 40), first)
    assert within.lengths.tolist() == [len(first.before) + 2 + len(first.after), 40]
    for tokens in within.sequences():
        assert tokens[-first.mask] == mask
    # A text of no tokens is what the template alone says.
    nothing = fill_template(batch_of(0), first)
    model = encoder.model
    expected = nothing.states(model)[-first.mask]
    assert_close(
        template_bias(model, nothing, first)[0], expected, atol=1e-5, rtol=1e-4
    )
    (shift,) = template_bias(model, fill_template(batch_of(3), first), first)
    assert not torch.allclose(shift, expected, atol=1e-4)  # other positions


def test_diffcse_replaces_only_ordinary_tokens(bert, tmp_path):
    save_generator(bert, tmp_path / "generator")
    encoder = load(bert)
    diffcse = begun("diffcse", encoder, generator=str(tmp_path / "generator"))
    ids = torch.tensor([[2, 8, 9, 10, 3], [2, 11, 3, -100, -100]])
    mask = torch.tensor([[0, 1, 1, 1, 0], [0, 1, 0, 0, 0]], dtype=torch.bool)
    edited, replaced = diffcse.edited(ids, mask)
    assert torch.equal(edited[~mask], ids[~mask])
    assert torch.equal(replaced == 1, (edited != ids) & (ids != -100))
    assert (replaced[ids == -100] == -100).all()
    with remote_error("none: no such folder, and the Hub lacks it or can't be reached"):
        begun("diffcse", encoder, generator=str(tmp_path / "none"))
    (tmp_path / "generator" / "model.safetensors").unlink()
    with config_error("not a masked language model in safetensors"):
        begun("diffcse", encoder, generator=str(tmp_path / "generator"))


def test_phase_by_polar_form_and_as_a_ranking():
    torch.manual_seed(0)
    vectors = torch.randn(5, 2, 6, dtype=torch.float64, requires_grad=True)
    one, other = vectors.detach().unbind(1)
    z, w = (side[:, :3].numpy() + 1j * side[:, 3:].numpy() for side in (one, other))
    square = np.average(
        np.sin((np.angle(z) - np.angle(w)) / 2) ** 2,
        axis=1,
        weights=np.abs(z) * np.abs(w),
    )
    scores = 1.01 - np.sqrt(square + 1e-4)
    assert phase_similarity(one, other).numpy() == approx(scores)
    labels = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])
    total = 1.0
    for i, j in itertools.permutations(range(5), 2):
        if labels[i] > labels[j]:
            total += math.exp(scores[j] - scores[i])
    assert Phase()(vectors, labels).item() == approx(math.log(total))
    assert torch.autograd.gradcheck(lambda given: Phase(0.2)(given, labels), vectors)


def test_the_in_batch_negatives_of_angle_emb_by_hand():
    # A positive pair e1, e2 at cosine 0, a negative pair (0.6, 0.8) and -e1; tau 1, mean over four texts.
    # From e1: e2 0, 0.6, -1; from e2: e1 0, 0.8, 0. The negative pair's texts are candidates only.
    first = torch.tensor([[1.0, 0], [0.6, 0.8]])
    second = torch.tensor([[0.0, 1], [-1, 0]])
    from_e1 = math.log(1 + math.exp(0.6) + math.exp(-1))
    from_e2 = math.log(1 + math.exp(0.8) + 1)
    loss = in_batch_angle_emb(first, second, torch.tensor([True, False]), 1.0)
    assert loss.item() == approx((from_e1 + from_e2) / 4, abs=1e-6)
