"""What torch.compile shall not read, as it would compile it anew for every batch.

`torch.compiler.disable` imports the whole compiler, which takes as long as torch itself. What it does in the
end is done here: the interpreter is told of the function, and the compiler finds a mark on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch._C._dynamo import eval_frame

Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Leave it, and all that it calls, as it is."""
    return _skipped(function, recursive=True)


def only_callees_compiled(function: Function) -> Function:
    """Leave it as it is, for it works by numbers that differ with each batch; what it calls is compiled."""
    return _skipped(function, recursive=False)


def _skipped(function: Function, *, recursive: bool) -> Function:
    if not hasattr(eval_frame, "set_code_exec_strategy"):  # no promise of torch's
        return cast("Function", torch.compiler.disable(function, recursive=recursive))  # type: ignore[no-untyped-call]
    actions, marked = eval_frame._FrameAction, cast("Any", function)
    callees = actions.SKIP if recursive else actions.DEFAULT
    eval_frame.set_code_exec_strategy(marked.__code__, eval_frame._FrameExecStrategy(actions.SKIP, callees))
    marked._torchdynamo_disable = True
    return function
