"""Random bytes for dropout, an order of magnitude cheaper than torch's on a CPU."""

from __future__ import annotations

import numpy as np
import torch

from aoe_train.model.packing.compiling import uncompiled


@uncompiled
def draw_seed() -> int:
    """A seed from torch's generator, so that whoever seeds or restores that covers dropout too."""
    return int(torch.randint(2**62, ()).item())


@uncompiled
def keep_mask(shape: torch.Size | tuple[int, ...], p: float, seed: int) -> tuple[torch.Tensor, float]:
    """Which elements stay (int8: 1, or 0), and the share that stays in the mean: `1 - p` to within 1/512.

    Dropout compares a random byte with a threshold, so `p` is rounded to 256ths; dividing by the share that
    really stays keeps the mean exact. Torch turns int8 into other numbers five times as fast as bool.
    """
    threshold = round(p * 256)
    count = int(np.prod(shape))
    drawn = np.frombuffer(np.random.Generator(np.random.SFC64(seed)).bytes(count), dtype=np.uint8)
    keep = torch.from_numpy((drawn >= threshold).view(np.int8)).view(shape)
    return keep, 1 - threshold / 256
