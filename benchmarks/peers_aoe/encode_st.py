"""Encode with sentence-transformers: torch, ONNX (plain, optimised to O3, int8) or OpenVINO (also int8)."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import torch
from runner import answer, job, time_encoding
from sentence_transformers import SentenceTransformer, __version__


def main() -> None:
    """Load the model with the job's backend and time each batch size."""
    work = job()
    with tempfile.TemporaryDirectory() as folder:
        model = load(work, folder)
        model.max_seq_length = work["max_length"]
        answer(
            **time_encoding(
                lambda texts, size: model.encode(
                    texts, batch_size=size, show_progress_bar=False
                ),
                work,
            ),
            version=__version__,
        )


def load(work: dict, folder: str) -> SentenceTransformer:
    """Load the model as documented for speed; a converted model is written to the folder."""
    path, precision = work["model"], work["precision"]
    if work["backend"] == "torch":
        dtype = {"fp32": "float32", "bf16": "bfloat16"}[precision]
        if work.get("pooling") == "last":
            return decoder(path, dtype)
        return SentenceTransformer(path, model_kwargs={"dtype": dtype})
    if work["backend"] == "openvino" and precision == "int8":
        return openvino_int8(work, folder)
    if work["backend"] == "openvino":
        # By default it computes in bf16 if the processor can.
        hint = {"fp32": "f32", "bf16": "bf16"}[precision]
        config = {
            "INFERENCE_PRECISION_HINT": hint,
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        }
        return SentenceTransformer(
            path, backend="openvino", model_kwargs={"export": True, "ov_config": config}
        )
    if precision == "bf16":
        sys.exit("the ONNX backend computes in fp32 or int8")
    model = onnx(path, export=True)
    if work["backend"] == "onnx" and precision == "fp32":
        return model
    from sentence_transformers import (
        export_dynamic_quantized_onnx_model,
        export_optimized_onnx_model,
    )

    model.save_pretrained(folder)
    if precision == "int8":
        name = (
            "avx512_vnni"
            if torch.backends.cpu.get_cpu_capability() == "AVX512"
            else "avx2"
        )
        export_dynamic_quantized_onnx_model(model, name, folder, file_suffix="int8")
        return onnx(folder, file_name="onnx/model_int8.onnx")
    export_optimized_onnx_model(model, "O3", folder)
    return onnx(folder, file_name="onnx/model_O3.onnx")


def openvino_int8(work: dict, folder: str) -> SentenceTransformer:
    """A model for OpenVINO with int8 weights and activations, calibrated on the texts that it encodes."""
    from sentence_transformers import export_static_quantized_openvino_model

    calibration = Path(folder) / "calibration"
    calibration.mkdir()
    texts = json.loads(Path(work["texts"]).read_text(encoding="utf-8"))
    lines = [json.dumps({"text": text}) for text in texts]
    (calibration / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    model = SentenceTransformer(
        work["model"],
        backend="openvino",
        model_kwargs={"export": True, "ov_config": hint},
    )
    model.save_pretrained(folder)
    names = {"dataset_name": str(calibration), "dataset_config_name": "default"}
    columns = {"dataset_split": "train", "column_name": "text"}
    export_static_quantized_openvino_model(model, None, folder, **names, **columns)
    file = "openvino/openvino_model_qint8_quantized.xml"
    # What isn't int8 is fp32, as on a processor without bf16.
    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
    }
    return SentenceTransformer(
        folder,
        backend="openvino",
        model_kwargs={"file_name": file, "ov_config": config},
    )


def decoder(path: str, dtype: str) -> SentenceTransformer:
    """A decoder with the last token's vector."""
    from sentence_transformers.models import Pooling, Transformer

    backbone = Transformer(path, model_args={"dtype": dtype})
    pooling = Pooling(backbone.get_word_embedding_dimension(), pooling_mode="lasttoken")
    return SentenceTransformer(modules=[backbone, pooling])


def onnx(path: str, **options: object) -> SentenceTransformer:
    """A model for ONNX Runtime with as many threads as torch uses."""
    from onnxruntime import SessionOptions

    session = SessionOptions()
    session.intra_op_num_threads = torch.get_num_threads()
    options = {
        **options,
        "provider": "CPUExecutionProvider",
        "session_options": session,
    }
    return SentenceTransformer(path, backend="onnx", model_kwargs=options)


if __name__ == "__main__":
    main()
