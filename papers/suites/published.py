"""Published scores, times 100, of tables with several columns.

AoE: Li & Li, "AoE: Angle-optimized Embeddings for Semantic Textual Similarity", ACL 2024.
AnglE: Li & Li, "AnglE-optimized Text Embeddings", arXiv 2309.12871, its latest version.
Rows of other models that both papers print are listed only under AoE.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from pairkit.base.errors import ConfigError

MEAN = "mean"


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper."""

    source: str
    metric: str
    tasks: tuple[str, ...]
    rows: dict[str, tuple[float, ...]]


_STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
_TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")

_STS_AOE = PublishedTable(
    "AoE, Table 1",
    "spearman",
    _STS,
    {
        "openai-ada-002": (69.80, 83.27, 76.09, 86.12, 85.96, 83.17, 80.60, 80.72),
        "openai-text-embedding-3": (72.84, 86.10, 81.15, 88.49, 85.08, 83.56, 79.00, 82.32),
        "InferSent-GloVe": (52.86, 66.75, 62.15, 72.77, 66.87, 68.03, 65.65, 65.01),
        "USE": (64.49, 67.80, 64.61, 76.83, 73.18, 74.92, 76.69, 71.22),
        "ConSERT, BERT-base": (74.07, 83.93, 77.05, 83.66, 78.76, 81.36, 76.77, 79.37),
        "CoSENT, BERT-base": (71.35, 77.52, 75.05, 79.68, 76.05, 78.99, 71.19, 75.69),
        "SBERT, BERT-base": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91, 74.89),
        "SimCSE, BERT-base": (75.30, 84.67, 80.19, 85.40, 80.82, 84.25, 80.39, 81.57),
        "AoE, BERT-base": (75.26, 85.61, 80.64, 86.36, 82.51, 85.64, 80.99, 82.43),
        "SBERT, LLaMA2-7B": (77.58, 89.21, 84.32, 87.63, 85.78, 87.06, 80.95, 84.65),
        "SimCSE, LLaMA2-7B": (78.39, 89.95, 84.80, 88.50, 86.04, 87.86, 81.11, 85.24),
        "AoE, LLaMA2-7B": (79.00, 90.56, 85.79, 89.43, 87.00, 88.97, 80.94, 85.96),
        "SBERT, LLaMA2-13B": (78.03, 89.89, 85.03, 88.96, 86.12, 88.03, 81.11, 85.31),
        "SimCSE, LLaMA2-13B": (78.69, 90.58, 85.50, 89.56, 86.92, 88.92, 81.28, 85.92),
        "AoE, LLaMA2-13B": (79.33, 90.65, 86.89, 90.45, 87.32, 89.69, 81.32, 86.52),
    },
)
_STS_ANGLE = PublishedTable(
    "AnglE, Table 2",
    "spearman",
    _STS,
    {
        "GloVe (avg.)": (55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76, 61.32),
        "BERT-flow": (58.40, 67.10, 60.85, 75.16, 71.22, 68.66, 64.47, 66.55),
        "BERT-whitening": (57.83, 66.90, 60.90, 75.08, 71.31, 68.24, 63.73, 66.28),
        "IS-BERT": (56.77, 69.24, 61.21, 75.23, 70.16, 69.21, 64.25, 66.58),
        "CT-BERT": (61.63, 76.80, 68.47, 77.50, 76.48, 74.31, 69.19, 72.05),
        "ConSERT-BERT, unsupervised": (64.64, 78.49, 69.07, 79.72, 75.95, 73.97, 67.31, 72.74),
        "DiffCSE-BERT, unsupervised": (72.28, 84.43, 76.47, 83.90, 80.54, 80.59, 71.23, 78.49),
        "SimCSE-BERT, unsupervised": (68.40, 82.41, 74.38, 80.91, 78.56, 76.85, 72.23, 76.25),
        "LLaMA2-7B, not trained": (50.66, 73.32, 62.76, 67.00, 70.98, 63.28, 67.40, 65.06),
        "AnglE-BERT": (75.09, 85.56, 80.66, 86.44, 82.47, 85.16, 81.23, 82.37),
        "AnglE-LLaMA2-7B": (79.00, 90.56, 85.79, 89.43, 87.00, 88.97, 80.94, 85.96),
    },
)
_TRANSFER_AOE = PublishedTable(
    "AoE, Table 3",
    "accuracy",
    _TRANSFER,
    {
        "BERT, average": (78.66, 86.25, 94.37, 88.66, 84.40, 92.80, 69.54, 84.94),
        "BERT, CLS": (78.68, 84.85, 94.21, 88.23, 84.13, 91.40, 71.13, 84.66),
        "IS-BERT": (81.09, 87.18, 94.96, 88.75, 85.96, 88.64, 74.24, 85.83),
        "DiffCSE, BERT-base": (82.69, 87.23, 95.23, 89.28, 86.60, 90.40, 76.58, 86.86),
        "SimCSE, BERT-base": (81.18, 86.46, 94.45, 88.88, 85.50, 89.80, 74.43, 85.81),
        "SBERT, BERT-base": (80.10, 86.25, 94.61, 88.78, 84.90, 89.00, 73.25, 85.27),
        "AoE, BERT-base": (83.00, 89.38, 94.72, 89.87, 87.20, 89.00, 75.54, 86.96),
        "AoE, LLaMA2-7B": (90.54, 93.06, 96.14, 91.61, 95.00, 95.80, 74.90, 91.01),
        "AoE, LLaMA2-13B": (90.77, 93.01, 96.15, 91.83, 94.95, 96.60, 76.87, 91.45),
    },
)
_TRANSFER_ANGLE = PublishedTable(
    "AnglE, Table 6",
    "accuracy",
    _TRANSFER,
    {
        "GloVe (avg.)": (77.25, 78.30, 91.17, 87.85, 80.18, 83.00, 72.87, 81.52),
        "Skip-thought (avg.)": (76.50, 80.10, 93.60, 87.10, 82.00, 92.20, 73.00, 83.50),
        "SimCSE-RoBERTa": (83.37, 87.76, 95.05, 87.16, 89.02, 90.80, 75.13, 86.90),
        "DiffCSE-RoBERTa": (82.82, 88.61, 94.32, 87.71, 88.63, 90.40, 76.81, 87.04),
        "AnglE-LLaMA": (91.09, 93.54, 96.47, 91.50, 95.28, 96.40, 75.36, 91.38),
    },
)
_NLI_AOE = PublishedTable(
    "AoE, Table 5",
    "accuracy",
    ("MultiNLI", "SNLI"),
    {
        "BERT-base": (52.56, 61.646, 57.10),
        "SimCSE, BERT-base": (54.57, 62.38, 58.48),
        "AoE, BERT-base": (56.60, 63.88, 60.24),
    },
)

_RETRIEVAL_ANGLE = PublishedTable(
    "AnglE, text retrieval",
    "strict_accuracy",
    ("Flickr30k",),
    {"AnglE": (12.9,), "SimCSE, supervised": (10.4,), "SBERT": (5.2,)},
)

PUBLISHED: dict[str, tuple[PublishedTable, ...]] = {
    "sts": (_STS_AOE, _STS_ANGLE),
    "transfer": (_TRANSFER_AOE, _TRANSFER_ANGLE),
    "nli": (_NLI_AOE,),
    "retrieval": (_RETRIEVAL_ANGLE,),
}
"""Tables by suite."""


def published_row(reference: str) -> dict[str, float]:
    """The scores of a row by column, such as `AoE, Table 1: USE`; the last is the mean if it is one more."""
    source, _, row = reference.partition(": ")
    tables = {table.source: table for table in chain(*PUBLISHED.values())}
    if source not in tables or row not in tables[source].rows:
        known = tables[source].rows if source in tables else tables
        raise ConfigError(f"no published scores {reference!r}; expected one of {', '.join(known)}")
    return dict(zip((*tables[source].tasks, MEAN), tables[source].rows[row], strict=False))
