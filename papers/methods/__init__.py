"""Methods of other papers by name. The docstring of each module lists its differences from the paper."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from papers.methods.base import Method

_METHODS = {
    "angle-phase": "objectives:Phase",
    "consert": "consert:ConSert",
    "consert-joint": "consert:ConSertJoint",
    "ct": "ct:ContrastiveTension",
    "diffcse": "diffcse:DiffCse",
    "in-batch-angle-emb": "objectives:in_batch_of_rows",
    "infersent": "infersent:InferSent",
    "isbert": "isbert:IsBert",
    "promptbert": "promptbert:PromptBert",
}
NAMES = tuple(_METHODS)


def method(name: str, **options: Any) -> Method | Callable[..., Any]:
    """The objective with this name, for `aoe_train.train(objective=...)`."""
    if name not in _METHODS:
        raise ConfigError(f"method {name!r}: expected one of {', '.join(NAMES)}")
    module, _, attribute = _METHODS[name].partition(":")
    objective: Any = getattr(import_module(f"{__name__}.{module}"), attribute)
    return objective(**options) if isinstance(objective, type) else objective  # type: ignore[no-any-return]
