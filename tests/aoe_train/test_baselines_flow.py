"""BERT-flow: volumes and likelihood beside autograd and scipy, what is fitted, and who reads it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sentence_transformers import SentenceTransformer

import aoe_train
from aoe_train import Encoder
from aoe_train._baselines.flow import _learn, fit_flow, surprise
from aoe_train._baselines.whitening import whiten
from aoe_train._flow import Flow
from aoe_train._settings import FlowSettings
from pairkit.errors import ConfigError, DataError
from pairkit.progress import unwatched
from tests.aoe_train.tiny import WORDS


def sentences(count: int) -> list[str]:
    random = np.random.default_rng(5)
    return [" ".join(random.choice(WORDS, 6)) for _ in range(count)]


def a_flow(dim: int) -> Flow:
    torch.manual_seed(1)
    flow = Flow(FlowSettings(levels=2, depth=2, width=5), dim)
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return flow


def test_one_step_by_hand():
    flow = Flow(FlowSettings(levels=1, depth=1, width=1), 3)
    (step,) = flow.levels[0]
    with torch.no_grad():
        step.shift.copy_(torch.tensor([1.0, 0.0, -1.0]))
        step.scale.copy_(torch.tensor([0.0, 0.0, 2.0]).log1p())
        for part, values in zip(step.coupling[::2], ([[2.0]], [[1.0]], [[3.0], [-1.0]]), strict=True):
            part.weight.copy_(torch.tensor(values))
            part.bias.zero_()
    # (1 + 1, 2, (2 - 1) * 3) turned round is (3, 2, 2), of which 3 adds 3 * 6 and -1 * 6
    assert flow(torch.tensor([[1.0, 2.0, 2.0]]))[0].tolist() == pytest.approx([20.0, -4.0, 3.0])
    assert flow.log_volume.item() == pytest.approx(np.log(3))


@pytest.mark.parametrize("dim", [8, 7])
def test_its_volume_is_that_of_its_derivative(dim: int):
    flow = a_flow(dim)
    for vector in torch.randn(3, dim):
        derivative = torch.autograd.functional.jacobian(flow, vector)
        assert torch.linalg.slogdet(derivative)[1].item() == pytest.approx(flow.log_volume.item(), abs=1e-4)


def test_the_likelihood_is_that_of_a_gaussian_through_the_map():
    flow, vectors = a_flow(8), torch.randn(5, 8)
    found = multivariate_normal(np.zeros(8)).logpdf(flow(vectors).detach()).mean() + flow.log_volume.item()
    assert surprise(flow, vectors).item() == pytest.approx(-found, rel=1e-5)


def test_it_begins_with_numbers_of_mean_zero_and_variance_one():
    flow = Flow(FlowSettings(), 8)
    vectors = torch.randn(50, 8) * 7 + 3
    vectors[:, 2] = 5.0  # one that never differs, as all-MiniLM-L6-v2 has
    flow.begin(vectors)
    latent = flow(vectors).detach()
    spread = sorted(latent.std(0, correction=0).tolist())
    assert spread == pytest.approx([0, *[1] * 7], abs=1e-4)
    assert latent.mean(0).abs().max() < 1e-5


def test_it_learns_how_numbers_hang_together():
    torch.manual_seed(0)
    half = torch.randn(6400, 4)
    vectors = torch.cat([half, half.square() + 0.1 * torch.randn(6400, 4)], dim=1)
    flow = Flow(FlowSettings(), 8)
    flow.begin(vectors)
    before = surprise(flow, vectors).item()
    _learn(flow, vectors, unwatched)
    assert surprise(flow, vectors).item() < before - 0.3


def test_fitting_raises_the_likelihood_and_its_readers_agree(bert: Path, tmp_path: Path):
    texts = sentences(4000)  # of a few hundred the flow learns less than a small step may cost
    torch.manual_seed(0)  # the dense layer begins at random
    Encoder.load(bert, device="cpu", dense=[12], normalize=True).save(tmp_path / "m")
    done = aoe_train.export(tmp_path / "m", out=tmp_path / "f", flow=texts, progress=False)
    assert done.flowed is not None
    assert (done.flowed.texts, done.flowed.dim) == (len(set(texts)), 12)
    assert done.flowed.after < done.flowed.before
    encoder = Encoder.load(tmp_path / "f", device="cpu", inference_only=True)
    plain = Encoder.load(tmp_path / "m", device="cpu").encode(texts[:9], normalize=False)
    expected = encoder.model.flow(torch.from_numpy(plain)).detach()
    np.testing.assert_allclose(encoder.encode(texts[:9], normalize=False), expected, atol=1e-4)
    theirs = SentenceTransformer(str(tmp_path / "f"), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(theirs.encode(texts[:9]), encoder.encode(texts[:9]), atol=1e-4)
    assert json.loads((tmp_path / "f/run.json").read_text())["export"]["flowed"]["dim"] == 12
    assert "BERT-flow" in (tmp_path / "f/README.md").read_text()


def test_one_seed_gives_one_flow(bert: Path):
    vectors = []
    for seed in (1, 1, 2):
        encoder = Encoder.load(bert, device="cpu")
        fit_flow(encoder, sentences(100), seed=seed)
        vectors.append(encoder.encode("the cat"))
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])


def test_what_can_have_no_flow_is_refused(bert: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="no graph can hold a flow"):
        aoe_train.export(bert, out=tmp_path / "f", flow=sentences(9), format="onnx", progress=False)
    with pytest.raises(ConfigError, match="is fitted to vectors by `aoe export --flow`"):
        Encoder.load(bert, device="cpu", flow={})
    with pytest.raises(ConfigError, match="vectors of 4 numbers or more"):
        fit_flow(Encoder.load(bert, device="cpu", dense=[3]), sentences(9))
    with pytest.raises(DataError, match="found 1 texts"):
        fit_flow(Encoder.load(bert, device="cpu"), ["one"])
    encoder = Encoder.load(bert, device="cpu")
    fit_flow(encoder, sentences(9))
    for again in (fit_flow, whiten):
        with pytest.raises(ConfigError, match="flow"):
            again(encoder, sentences(50))
