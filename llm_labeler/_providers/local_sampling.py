"""Sampling that each question does for itself: batch mates change nothing in its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

if TYPE_CHECKING:
    from collections.abc import Sequence

_TINY = 1e-20  # keeps the logarithms finite


class GumbelNoise(LogitsProcessor):
    """Noise that makes the greatest logit a sample of the softmax, drawn for each row from a seed of its own.

    argmax(logit + Gumbel noise) is distributed as softmax(logits) is (Gumbel, 1954), so greedy search over it
    samples; one generator a row, where `do_sample` has one for the whole batch.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Scores with this step's noise."""
        noise = torch.stack(
            [
                torch.rand(scores.shape[-1], generator=generator, device=scores.device)
                for generator in self._generators
            ]
        )
        return scores.float() - torch.log(-torch.log(noise + _TINY) + _TINY)


def sampling(
    temperature: float | None, top_p: float | None, seeds: Sequence[int], device: torch.device
) -> LogitsProcessorList:
    """What turns greedy search into sampling; empty where the temperature is None or 0.

    Args:
        temperature: Of the softmax.
        top_p: Share of probability that the tokens sampled from make up; None for all.
        seeds: One for each row.
        device: Where the logits are.
    """
    steps = LogitsProcessorList()
    if temperature:
        steps.append(TemperatureLogitsWarper(temperature))
        if top_p is not None and top_p < 1:
            steps.append(TopPLogitsWarper(top_p))
        steps.append(GumbelNoise(seeds, device))
    return steps
