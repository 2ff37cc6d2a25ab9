"""An ONNX graph in int8."""

from __future__ import annotations

import logging
from pathlib import Path

from aoe_train._export.graphs import GRAPHS


def quantize_onnx(folder: Path) -> None:
    """Put a graph with int8 weights, one scale a channel, in the place of the folder's float32 graph.

    Values are quantised as they are computed. Weights take 7 bits: with 8, processors that add products of
    int8 in 16 bits (x86 without VNNI) would cut some sums off, so that vectors depended on the processor.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain, graph = folder / GRAPHS["onnx"].file, folder / GRAPHS["onnx-int8"].file
    external = plain.with_name(plain.name + ".data")  # where a graph is too large for one file
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises steps that change nothing here
    try:
        quantize_dynamic(
            plain,
            graph,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=external.exists(),
        )
    finally:
        root.setLevel(level)
    plain.unlink()
    external.unlink(missing_ok=True)
