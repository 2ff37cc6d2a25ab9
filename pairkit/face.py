"""How packages and scripts begin: names are loaded when they are asked for (PEP 562), Ctrl-C ends at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn


def lazy_names(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

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


_UNSUPPORTED, _INTERRUPTED = 2, 130  # exit codes, as in `pairkit.errors` and `pairkit.terminal`


def start(module: str) -> None:
    """Import a command line and run its `main`."""
    if sys.platform == "win32":
        sys.stderr.write("error: needs Linux or macOS; on Windows, use it in WSL\n")
        sys.exit(_UNSUPPORTED)
    wanted = signal.getsignal(signal.SIGINT)
    if wanted != signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    signal.signal(signal.SIGINT, wanted)
    try:
        main()
    finally:
        if wanted != signal.SIG_IGN:  # while the interpreter ends
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    """End at once: nothing has begun, and an exception within an import may become another one."""
    os.write(2, b"interrupted; run the same command again to continue\n")
    os._exit(_INTERRUPTED)
