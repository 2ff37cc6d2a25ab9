"""Losses for sentence-transformers' Trainer."""

import inspect
from typing import Any

import pytest
import torch

import gis_builder
from aoe_train import Encoder
from aoe_train.objectives.losses import AngleLoss, AoELoss, ContrastiveLoss, CosineLoss, _numbers
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.objective_settings import PRESETS
from pairkit import ConfigError, DataError
from tests.aoe_train.tiny import only, save_bert

st = pytest.importorskip("sentence_transformers")

FIRST = ["the cat is running", "a dog", "the man on the road", "the cat is running"]
SECOND = ["a cat runs", "the man", "a road", "a cat runs"]
LABELS = torch.tensor([1.0, 0.0, 0.3, 1.0])


@pytest.fixture(scope="module")
def folder(bert, tmp_path_factory):
    """The tiny BERT in sentence-transformers' format."""
    out = tmp_path_factory.mktemp("st") / "model"
    Encoder.load(bert, pooling="avg", device="cpu").save(out)
    return out


@pytest.fixture
def model(folder):
    return st.SentenceTransformer(str(folder), device="cpu").eval()


def vectors(model: Any, *columns: list[str]) -> torch.Tensor:
    return torch.stack([model.encode(texts, convert_to_tensor=True) for texts in columns], dim=1)


@pytest.mark.parametrize(
    ("kind", "given", "settings"),
    [
        (AoELoss, {}, PRESETS["aoe"]),
        (AngleLoss, {}, only("angle")),
        (CosineLoss, {}, PRESETS["cosent"]),
        (CosineLoss, {"margin": 0.3}, PRESETS["cosent"].model_copy(update={"margin": 0.3})),
        (ContrastiveLoss, {}, PRESETS["simcse"]),
    ],
)
def test_loss_equals_the_objective(kind, given, settings, model):
    loss = kind(model, **given)
    found = loss([model.preprocess(texts) for texts in (FIRST, SECOND)], LABELS)
    objective = Objective(settings, dim=32, kind="graded", label_range=(0.0, 1.0))
    texts = torch.tensor([[0, 1], [2, 3], [4, 5], [0, 1]])  # the last row repeats the first
    expected = objective(vectors(model, FIRST, SECOND), LABELS, texts)["loss"]
    assert float(found) == pytest.approx(float(expected), abs=1e-5)
    found.backward()
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())
    assert {*loss.get_config_dict()} == {*inspect.signature(kind).parameters} - {"model", "guide"}
    assert loss.citation.strip().startswith("@")


def test_cosine_loss_equals_cosent(model):
    features = [model.preprocess(texts) for texts in (FIRST, SECOND)]
    theirs = st.sentence_transformer.losses.CoSENTLoss(model, scale=20)(features, LABELS)
    assert float(CosineLoss(model)(features, LABELS)) == pytest.approx(float(theirs), abs=1e-5)


def test_triplets_equal_the_objective(model):
    negatives = ["a road", "a cat", "the dog", "the man"]
    columns = (FIRST, SECOND, negatives)
    found = AoELoss(model)([model.preprocess(texts) for texts in columns], None)
    texts = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 2, 7], [0, 1, 4]])
    objective = Objective(PRESETS["aoe"], dim=32, kind="triplet")
    expected = objective(vectors(model, *columns), None, texts)["loss"]
    assert float(found) == pytest.approx(float(expected), abs=1e-5)


# Without repeated texts, which sentence-transformers uses as negatives.
ANCHORS, POSITIVES = ["the cat is running", "a dog", "the man on the road"], ["a cat runs", "dogs", "a road"]
NEGATIVES = [
    ["in the city", "the cat", "is"],
    ["the dog", "on the road", "man"],
    ["city", "a man", "running"],
]


@pytest.mark.parametrize("negatives", [1, 2, 3])
def test_contrastive_loss_equals_multiple_negatives_ranking(negatives, model):
    columns = [ANCHORS, POSITIVES, *NEGATIVES[:negatives]]
    theirs = st.sentence_transformer.losses.MultipleNegativesRankingLoss(model, scale=20)
    values, gradients = [], []
    for loss in (ContrastiveLoss(model, tau=1 / 20), theirs):
        model.zero_grad()
        value = loss([model.preprocess(texts) for texts in columns], None)
        value.backward()
        values.append(value.detach())
        gradients.append({name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None})
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_text_hashes_ignore_padding(model):
    long = [*FIRST[:3], "the cat is running on the road in the city"]
    short, padded = (model.preprocess(texts) for texts in (FIRST, long))
    assert short["input_ids"].shape != padded["input_ids"].shape
    found = _numbers([short, padded])
    assert found is not None
    assert torch.equal(found[:3, 0], found[:3, 1])
    assert found[3, 0] == found[0, 0] != found[3, 1]
    assert len(found.unique()) == 4
    assert _numbers([{"pixels": torch.zeros(2, 3)}]) is None


@pytest.mark.parametrize("kind", [AngleLoss, CosineLoss, AoELoss])
def test_ranking_losses_need_labels(kind, model):
    features = [model.preprocess(texts) for texts in (FIRST, SECOND)]
    with pytest.raises(ConfigError, match=f"{kind.__name__}: found 2 columns and no label"):
        kind(model)(features, None)
    assert float(ContrastiveLoss(model)(features, None)) > 0
    with pytest.raises(ConfigError, match="found 1 column and a label"):
        kind(model)(features[:1], LABELS)
    with pytest.raises(DataError, match=f"{kind.__name__}: found labels from 0 to 5; expected 0 to 1"):
        kind(model)(features, 5 * LABELS)


@pytest.mark.parametrize(
    ("columns", "seen"),
    [
        ({"text1": FIRST * 4, "text2": SECOND * 4, "label": LABELS.tolist() * 4}, 2),
        ({}, 2),
        (dict(zip("apqrs", [ANCHORS, POSITIVES, *NEGATIVES], strict=True)), 5),
    ],
    ids=["pairs", "a dataset of gis", "negatives"],
)
def test_sentence_transformers_trainer(columns, seen, model, tmp_path):
    datasets = pytest.importorskip("datasets")
    shapes = []

    class Watched(AoELoss):
        def compute_loss_from_embeddings(self, vectors: Any, *more: Any) -> Any:
            shapes.append(vectors.shape[1])
            return super().compute_loss_from_embeddings(vectors, *more)

    how = {"max_steps": 3, "per_device_train_batch_size": 8, "learning_rate": 1e-3, "report_to": "none"}
    args = st.SentenceTransformerTrainingArguments(str(tmp_path / "out"), **how)
    before = [weight.detach().clone() for weight in model.parameters()]
    if columns:
        rows = datasets.Dataset.from_dict(columns)
    else:
        gis_builder.demo(tmp_path / "issues", progress=False)
        rows = datasets.load_dataset(str(tmp_path / "issues"), split="train", cache_dir=str(tmp_path))
        rows = rows.select_columns(["text1", "text2", "label"])
    trainer = st.SentenceTransformerTrainer(model=model, args=args, train_dataset=rows, loss=Watched(model))
    assert trainer.train().training_loss > 0
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert shapes == [seen] * 3


@pytest.fixture(scope="module")
def guide_folder(tmp_path_factory):
    """Another model with the same tokenizer."""
    out = tmp_path_factory.mktemp("guide")
    Encoder.load(save_bert(out / "bert", dim=16, seed=5), pooling="avg", device="cpu").save(out / "model")
    return out / "model"


@pytest.mark.parametrize("length", [None, 40], ids=["the same tokens", "tokens of its own"])
@pytest.mark.parametrize("columns", [2, 3])
def test_guide_equals_gist_loss(columns, length, model, guide_folder):
    guide = st.SentenceTransformer(str(guide_folder), device="cpu").eval()
    if length is not None:
        guide.max_seq_length = length
    theirs = st.sentence_transformer.losses.GISTEmbedLoss(model, guide, temperature=0.05, margin=0.01)
    ours = ContrastiveLoss(
        model, guide=guide, guide_margin=0.01, contrast_anchors=True, contrast_positives=True
    )
    without = ContrastiveLoss(model, contrast_anchors=True, contrast_positives=True)
    texts = (ANCHORS, POSITIVES, NEGATIVES[0])[:columns]
    found, expected, plain = (
        float(loss([model.preprocess(column) for column in texts], None)) for loss in (ours, theirs, without)
    )
    assert found == pytest.approx(expected, abs=1e-5)
    assert found < plain - 1e-3
    assert ours.get_config_dict()["guide"] is guide
