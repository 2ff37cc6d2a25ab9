"""The forms of a graph: where its file lies, what runs it, and what must be installed to write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aoe_train._prompts import read_prompt
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train._prompts import NamedPrompts

INPUTS = ("input_ids", "attention_mask")
OUTPUTS = ("last_hidden_state", "sentence_embedding")
_ONNX = ("onnx", "onnxruntime", "onnxscript")
_PACKAGES = {"onnx": _ONNX, "openvino": (*_ONNX, "openvino", "nncf")}


@dataclass(frozen=True)
class Graph:
    """A form of graph.

    Attributes:
        backend: What runs it, as sentence-transformers calls it; also the folder of the file and our extra.
        file: Its path in the model folder, as sentence-transformers names such files.
        int8: Whether its weights are int8; else they are float32.
    """

    backend: Literal["onnx", "openvino"]
    file: str
    int8: bool = False


GRAPHS = {
    "onnx": Graph("onnx", "onnx/model.onnx"),
    "onnx-int8": Graph("onnx", "onnx/model_qint8.onnx", int8=True),
    "openvino": Graph("openvino", "openvino/openvino_model.xml"),
    "openvino-int8": Graph("openvino", "openvino/openvino_model_qint8.xml", int8=True),
}


def require(backend: Literal["onnx", "openvino"]) -> None:
    """Check that everything is installed that a graph of `backend` is written and checked with.

    Raises:
        ConfigError: names what is not, and the extra that brings it.
    """
    missing = [name for name in _PACKAGES[backend] if find_spec(name) is None]
    if missing:
        what = {"onnx": "ONNX", "openvino": "OpenVINO"}[backend]
        raise ConfigError(
            f"{what} needs {', '.join(missing)}; install with `pip install 'aoe-toolkit[{backend}]'`"
        )


def graph_encoder(
    folder: Path, run: Callable[[dict[str, np.ndarray]], np.ndarray], prompts: NamedPrompts | None = None
) -> Callable[..., np.ndarray]:
    """What encodes texts, perhaps with a `prompt_name`: the folder's tokeniser, then `run`."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)

    def encode(texts: Sequence[str], prompt_name: str | None = None) -> np.ndarray:
        words = "" if prompts is None or prompts.around_all else prompts.chosen(name=prompt_name)
        whole = [read_prompt(words).before + text for text in texts]
        tokens = tokenizer(whole, padding=True, truncation=True, return_tensors="np")
        return run({name: tokens[name].astype("int64") for name in INPUTS})

    return encode
