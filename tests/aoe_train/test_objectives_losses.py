"""Losses for sentence-transformers' Trainer."""

import inspect
import re
from itertools import chain

import pytest
import torch

from aoe_train.objectives.losses import (
    AngleLoss,
    AoELoss,
    ContrastiveLoss,
    CoSENTLoss,
    _Loss,
)
from aoe_train.objectives.objective_settings import PRESETS
from tests.aoe_train.test_objectives_contrastive import plain, ranking_plain
from tests.aoe_train.tiny import load, save_bert, sentence_transformer
from tests.docs.blocks import ROOT
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    each_line,
    module_fixture,
    parametrize,
    table,
)

st = pytest.importorskip("sentence_transformers")

FIRST = ["the cat is running", "a dog", "the man on the road", "the cat is running"]
SECOND = ["a cat runs", "the man", "a road", "a cat runs"]
LABELS = torch.tensor([1.0, 0.0, 0.8, 1.0])


@module_fixture
def folder(bert, tmp_path_factory):
    """The tiny BERT in sentence-transformers' format."""
    out = tmp_path_factory.mktemp("st") / "model"
    load(bert, pooling="avg").save(out)
    return out


@pytest.fixture
def model(folder):
    return sentence_transformer(folder).eval()


def loss_of(loss, columns, labels):
    return loss([loss.model.preprocess(texts) for texts in columns], labels).item()


def contrastive(model, columns, positive):
    """InfoNCE in plain loops."""
    anchors, *others = columns
    texts = [*chain(*others)]
    numbers = [*zip(anchors * len(others), texts, strict=True)]
    negatives = [False] * (len(texts) - len(anchors))
    vectors = model.encode(anchors), model.encode(texts)
    return plain(*vectors, numbers, positive + negatives, 0.05, [True] * len(texts))


COLUMNS = (FIRST, SECOND)


def test_margin_of_the_cosine_loss_equals_plain_loops(model):
    one, other = (model.encode(texts, convert_to_tensor=True) for texts in COLUMNS)
    expected = ranking_plain(torch.cosine_similarity(one, other), LABELS, 20, 0.3)
    assert loss_of(CoSENTLoss(model, margin=0.3), COLUMNS, LABELS) == approx(
        float(expected), abs=1e-5
    )


@table(
    """
    ours, theirs, scale
    COSENT | CoSENTLoss | 20
    ANGLE | AnglELoss | 1
    """,
    COSENT=CoSENTLoss,
    ANGLE=AngleLoss,
)
def test_ranking_losses_equal_sentence_transformers(ours, theirs, scale, model):
    peer = getattr(st.sentence_transformer.losses, theirs)(model, scale=scale)
    expected = loss_of(peer, COLUMNS, LABELS)
    assert loss_of(ours(model), COLUMNS, LABELS) == approx(expected, abs=1e-5)


@table(
    """
    columns, labels
    # the last row repeats the first
    PAIRS | LABELS
    TRIPLETS | None
    """,
    PAIRS=COLUMNS,
    TRIPLETS=(*COLUMNS, ["a road", "a cat", "the dog", "the man"]),
    LABELS=LABELS,
)
def test_contrastive_loss_equals_plain_loops(columns, labels, model):
    positive = [True] * 4 if labels is None else (labels >= 0.8).tolist()
    expected = contrastive(model, columns, positive)
    assert loss_of(ContrastiveLoss(model), columns, labels) == approx(
        expected, abs=1e-5
    )
    parts = loss_of(AngleLoss(model), columns, labels), expected
    assert loss_of(AoELoss(model), columns, labels) == approx(sum(parts), abs=1e-5)
    assert loss_of(
        AoELoss(model, angle_weight=0.5, contrastive_weight=3), columns, labels
    ) == approx(0.5 * parts[0] + 3 * parts[1], abs=1e-4)


def test_equal_texts_are_recognised_in_spite_of_padding(model):
    """The second column is padded to a long text; the anchor of row 0 is a candidate of row 1."""
    long = "the man on the road in the city"
    columns = ["the cat", "a dog"], ["a cat", "the cat"], [long, "the cat"]
    one, _, other = (model.preprocess(texts)["input_ids"].shape for texts in columns)
    assert one != other
    expected = contrastive(model, columns, [True, True])
    assert loss_of(ContrastiveLoss(model), columns, None) == approx(expected, abs=1e-5)


def test_texts_without_padded_tokens_count_as_different(model):
    """Such as those of a static model: a repeated text is a negative then."""
    static = st.sentence_transformer.modules.StaticEmbedding(
        model.tokenizer, embedding_dim=8
    )
    bag = st.SentenceTransformer(modules=[static])
    one, other = (
        bag.encode(texts, normalize_embeddings=True, convert_to_tensor=True)
        for texts in COLUMNS
    )
    expected = torch.nn.functional.cross_entropy(20 * one @ other.T, torch.arange(4))
    assert loss_of(ContrastiveLoss(bag), COLUMNS, None) == approx(
        float(expected), abs=1e-5
    )


@parametrize("kind", [AoELoss, AngleLoss, CoSENTLoss, ContrastiveLoss])
def test_options_are_in_the_card(kind, model):
    loss = kind(model)
    options = {*inspect.signature(kind).parameters} - {"model", "guide"}
    assert {*loss.get_config_dict()} == options
    assert loss.citation.strip().startswith("@")


# Without repeated texts, which sentence-transformers uses as negatives.
ANCHORS, POSITIVES = FIRST[:3], ["a cat runs", "dogs", "a road"]
NEGATIVES = [
    ["in the city", "the cat", "is"],
    ["the dog", "on the road", "man"],
    ["city", "a man", "running"],
]


@parametrize("kind", [AngleLoss, CoSENTLoss, AoELoss])
def test_ranking_losses_need_labels(kind, model):
    features = [model.preprocess(texts) for texts in COLUMNS]
    with config_error(f"{kind.__name__}: found 2 columns and no label"):
        kind(model)(features, None)
    assert float(ContrastiveLoss(model)(features, None)) > 0
    with config_error("found 1 column and a label"):
        kind(model)(features[:1], LABELS)
    with data_error(f"{kind.__name__}: found labels from 0 to 5; expected 0 to 1"):
        kind(model)(features, 5 * LABELS)


@parametrize(
    "columns, seen",
    [
        ({"text1": FIRST * 4, "text2": SECOND * 4, "label": LABELS.tolist() * 4}, 2),
        (dict(zip("apqrs", [ANCHORS, POSITIVES, *NEGATIVES], strict=True)), 5),
    ],
    ids=["pairs", "negatives"],
)
def test_sentence_transformers_trainer(columns, seen, model, tmp_path):
    datasets = pytest.importorskip("datasets")
    shapes = []

    class Watched(AoELoss):
        def compute_loss_from_embeddings(self, vectors, *more):
            shapes.append(vectors.shape[1])
            return super().compute_loss_from_embeddings(vectors, *more)

    args = st.SentenceTransformerTrainingArguments(
        str(tmp_path / "out"),
        max_steps=3,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        report_to="none",
    )
    before = model.encode(FIRST)
    rows = datasets.Dataset.from_dict(columns)
    trainer = st.SentenceTransformerTrainer(
        model=model, args=args, train_dataset=rows, loss=Watched(model)
    )
    assert trainer.train().training_loss > 0
    assert (model.eval().encode(FIRST) != before).any()
    assert shapes == [seen] * 3


@module_fixture
def guide_folder(tmp_path_factory):
    """Another model with the same tokenizer."""
    out = tmp_path_factory.mktemp("guide")
    load(save_bert(out / "bert", dim=16, seed=5), pooling="avg").save(out / "model")
    return out / "model"


@parametrize("length", [None, 40], ids=["the same tokens", "tokens of its own"])
def test_guide_equals_gist_loss(length, model, guide_folder):
    guide = sentence_transformer(guide_folder).eval()
    if length is not None:
        guide.max_seq_length = length
    theirs = st.sentence_transformer.losses.GISTEmbedLoss(
        model, guide, temperature=0.05, margin=0.01
    )
    every = {"contrast_anchors": True, "contrast_positives": True}
    ours = ContrastiveLoss(model, guide=guide, guide_margin=0.01, **every)
    texts = (ANCHORS, [f"{text} " * 20 for text in POSITIVES], NEGATIVES[0])
    found, expected = (loss_of(loss, texts, None) for loss in (ours, theirs))
    assert found == approx(expected, abs=1e-5)
    assert ours.get_config_dict()["guide"] is guide


PAGE = ROOT / "docs/howto/from-sentence-transformers.md"


def settings_on_the_page(name):
    """The objective of a row of the table: a preset and settings."""
    (cell,) = (
        line.split("|")[2]
        for line in PAGE.read_text().splitlines()
        if line.startswith(f"| `{name}`")
    )
    (preset,) = re.findall(r"--preset (\w+)", cell)
    settings = PRESETS[preset].model_dump()
    for path, value in re.findall(r"`objective\.([\w.]+)=([\w.]+)`", cell):
        *sections, key = path.split(".")
        section = settings[sections[0]] if sections else settings
        section[key] = value
    return settings


@each_line(
    """
    name
    CoSENTLoss
    AnglELoss
    CosineSimilarityLoss
    MultipleNegativesRankingLoss
    GISTEmbedLoss
    """
)
def test_settings_on_the_page_equal_sentence_transformers_defaults(
    name, model, guide_folder
):
    guided = name == "GISTEmbedLoss"
    guide = sentence_transformer(guide_folder).eval() if guided else None
    ours = _Loss(model, {}, guide, **settings_on_the_page(name))
    theirs = getattr(st.sentence_transformer.losses, name)(
        model, *([guide] if guided else [])
    )
    is_labelled = name not in ("MultipleNegativesRankingLoss", "GISTEmbedLoss")
    labels = torch.tensor([1.0, 0.0, 0.3]) if is_labelled else None
    found, expected = (
        loss_of(loss, (ANCHORS, POSITIVES), labels) for loss in (ours, theirs)
    )
    assert found == approx(expected, abs=1e-5)
