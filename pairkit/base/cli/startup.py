"""Start of packages and scripts: public names are imported on first use (PEP 562), Ctrl-C ends at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from pairkit.base.cli.options import documentation

_UNSUPPORTED = 2  # exit code, as in `pairkit.base.errors`
_INTERRUPTED = 130  # exit code, as in `pairkit.base.cli.terminal`


def lazy_names(
    package: str, names_of_modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package; type checkers read `__init__.pyi` instead."""
    origins = {
        name: module
        for module, names in names_of_modules.items()
        for name in names.split()
    }

    def load(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(origins[name])
        value: Any = getattr(module, name, None) or import_module(
            f"{module.__name__}.{name}"
        )
        if "declared" in getattr(value, "__dict__", ()):
            value.__doc__ = documentation(value)
        # `__getattr__` is called once for each name.
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(origins)
    return load, lambda: names, names


def start(module: str) -> None:
    """Run the application of a module, whose imports are slow."""
    if sys.platform == "win32":
        sys.stderr.write("error: needs Linux or macOS; on Windows, use it in WSL\n")
        sys.exit(_UNSUPPORTED)
    handler = signal.getsignal(signal.SIGINT)
    if handler != signal.SIG_IGN:  # ignored in background jobs
        signal.signal(signal.SIGINT, _leave)
    from pairkit.base.cli.terminal import run

    application = import_module(module).app
    signal.signal(signal.SIGINT, handler)
    try:
        run(application)
    finally:
        if handler != signal.SIG_IGN:  # during interpreter shutdown
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    """End at once, as imports may catch KeyboardInterrupt; no work has begun."""
    os.write(2, b"interrupted; run the same command again to continue\n")
    os._exit(_INTERRUPTED)
