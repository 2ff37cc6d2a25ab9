"""What torch.compile shall not read, as it would compile it anew for every batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Leave it, and all that it calls, as it is."""
    return cast("Function", torch.compiler.disable(function))  # type: ignore[no-untyped-call]


def only_callees_compiled(function: Function) -> Function:
    """Leave it as it is, for it works by numbers that differ with each batch; what it calls is compiled."""
    return cast("Function", torch.compiler.disable(function, recursive=False))  # type: ignore[no-untyped-call]
