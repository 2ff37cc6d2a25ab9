"""Encode with sentence-transformers: its torch, ONNX (plain, or optimised to O3) or OpenVINO backend."""

from __future__ import annotations

import sys
import tempfile

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
                lambda texts, size: model.encode(texts, batch_size=size, show_progress_bar=False), work
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
    if work["backend"] == "openvino":
        # By default it computes in bf16 if the processor can.
        hint = {"fp32": "f32", "bf16": "bf16"}[precision]
        config = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": torch.get_num_threads()}
        return SentenceTransformer(
            path, backend="openvino", model_kwargs={"export": True, "ov_config": config}
        )
    if precision != "fp32":
        sys.exit("the ONNX backend computes in fp32")
    model = onnx(path, export=True)
    if work["backend"] == "onnx":
        return model
    from sentence_transformers import export_optimized_onnx_model

    model.save_pretrained(folder)
    export_optimized_onnx_model(model, "O3", folder)
    return onnx(folder, file_name="onnx/model_O3.onnx")


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
    options = {**options, "provider": "CPUExecutionProvider", "session_options": session}
    return SentenceTransformer(path, backend="onnx", model_kwargs=options)


if __name__ == "__main__":
    main()
