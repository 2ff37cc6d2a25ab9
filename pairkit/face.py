"""A package whose names are loaded when they are asked for, so that importing it costs nothing (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its `__name__`.
        places: Each public name to the module that has it, such as `gis_builder._face`; a module of the
            package stands for itself.

    Example:
        __all__ = ["build", "plan"]
        __getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "gis_builder._face"))
    """

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(places[name])
        found = module if places[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)  # so that it is asked for once
        return found

    def names() -> list[str]:
        return sorted(places)  # not what the package's own file imports

    return load, names
