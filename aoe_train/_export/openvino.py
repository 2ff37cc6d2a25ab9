"""The graph for OpenVINO, in the layout that sentence-transformers' `backend="openvino"` looks for."""

from __future__ import annotations

import logging
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from aoe_train._export.graphs import GRAPHS, OUTPUTS, graph_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from aoe_train._prompts import NamedPrompts

_EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # else bf16 where the processor has it


def convert_to_openvino(folder: Path) -> None:
    """Put OpenVINO's graph, in float32, in the place of the folder's ONNX graph."""
    openvino = _openvino()
    onnx, graph = folder / GRAPHS["onnx"].file, folder / GRAPHS["openvino"].file
    graph.parent.mkdir()
    openvino.save_model(openvino.convert_model(onnx), graph, compress_to_fp16=False)
    shutil.rmtree(onnx.parent)


def compress_openvino(folder: Path) -> None:
    """Put a graph with int8 weights, one scale a channel, in the place of OpenVINO's float32 graph."""
    openvino = _openvino()
    import nncf

    nncf.set_log_level(logging.ERROR)
    plain, graph = folder / GRAPHS["openvino"].file, folder / GRAPHS["openvino-int8"].file
    with redirect_stdout(StringIO()):  # its progress; stdout is for results
        compressed = nncf.compress_weights(
            openvino.Core().read_model(plain), mode=nncf.CompressWeightsMode.INT8_ASYM
        )
    openvino.save_model(compressed, graph, compress_to_fp16=False)
    for path in (plain, plain.with_suffix(".bin")):
        path.unlink()


def openvino_encoder(
    folder: Path, prompts: NamedPrompts | None = None, *, file: str = GRAPHS["openvino"].file
) -> Callable[..., np.ndarray]:
    """What encodes texts, perhaps with a `prompt_name`, by a folder's graph with OpenVINO, on the CPU.

    A float32 graph is computed in float32, one of int8 as OpenVINO would do it by itself on this processor.
    """
    config = {} if file == GRAPHS["openvino-int8"].file else _EXACT
    compiled = _openvino().compile_model(folder / file, "CPU", config)

    def run(inputs: dict[str, np.ndarray]) -> np.ndarray:
        vectors: np.ndarray = compiled(inputs)[OUTPUTS[1]].copy()  # else the next call writes over it
        return vectors

    return graph_encoder(folder, run, prompts)


def _openvino() -> ModuleType:
    """OpenVINO, without `openvino_telemetry`, which would tell a server of imports and conversions unasked.

    Python takes None for a module that can't be imported; OpenVINO and nncf then send nothing.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # what Python documents for it
    import openvino

    module: ModuleType = openvino
    return module
