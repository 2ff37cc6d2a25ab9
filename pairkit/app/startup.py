"""How packages and scripts begin: names are loaded when they are asked for (PEP 562), Ctrl-C ends at once."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its imports under `TYPE_CHECKING`."""
    loader: Any = sys.modules[package].__loader__
    places = {
        name.asname: (node.module, name.name)
        for block in ast.parse(loader.get_source(package)).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
        if name.asname  # `import X as X` is what type checkers take for public
    }

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = places[name]
        found = import_module(module)
        found = getattr(found, attribute, None) or import_module(f"{module}.{attribute}")
        setattr(sys.modules[package], name, found)  # so that it is asked for once
        return found

    names = sorted(places)
    return load, lambda: names, names


_UNSUPPORTED, _INTERRUPTED = 2, 130  # exit codes, as in `pairkit.app.errors` and `pairkit.app.terminal`


def start(load: str | Callable[[], Any]) -> None:
    """Run a command line: the `main` of a module, or the application that a function makes."""
    if sys.platform == "win32":
        sys.stderr.write("error: needs Linux or macOS; on Windows, use it in WSL\n")
        sys.exit(_UNSUPPORTED)
    wanted = signal.getsignal(signal.SIGINT)
    if wanted != signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, _leave)
    main = import_module(load).main if isinstance(load, str) else _runner(load())
    signal.signal(signal.SIGINT, wanted)
    try:
        main()
    finally:
        if wanted != signal.SIG_IGN:  # while the interpreter ends
            signal.signal(signal.SIGINT, _leave)


def _runner(application: Any) -> Callable[[], None]:
    from pairkit.app.terminal import run

    return lambda: run(application)


def _leave(*_: object) -> NoReturn:
    """End at once: nothing has begun, and an exception within an import may become another one."""
    os.write(2, b"interrupted; run the same command again to continue\n")
    os._exit(_INTERRUPTED)
