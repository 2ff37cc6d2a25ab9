"""Training text embeddings with angles.

>>> import aoe_train
>>> run = aoe_train.train("pairs.tsv", backbone="model", out="trained", lr=1e-3, progress=False)
>>> vectors = run.encoder.encode(["A plane is taking off.", "An air plane is taking off."])
>>> vectors.shape == (2, run.encoder.dim)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.face import lazy_names

if TYPE_CHECKING:
    from aoe_train import losses
    from aoe_train._distill.static import Distilled
    from aoe_train._encode import Encoded
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.evaluation import Evaluation
    from aoe_train._export.export import Exported
    from aoe_train._face.distilling import distill
    from aoe_train._face.encoding import encode, merge_shards
    from aoe_train._face.evaluation import evaluate
    from aoe_train._face.exporting import export, push
    from aoe_train._face.mining import Mined, mine
    from aoe_train._face.searching import duplicates, index, open_index, search, search_every
    from aoe_train._face.serving import serve
    from aoe_train._face.training import Plan, Trained, TrainOptions, plan, train
    from aoe_train._hybrid import Hybrid
    from aoe_train._search.alike import Alike
    from aoe_train._search.ask import Hit, SearchIndex
    from aoe_train._search.build import Indexed
    from aoe_train._search.every import Every
    from aoe_train._serve.server import EmbeddingServer
    from aoe_train._text_model import TextBatch
    from aoe_train._text_objective import TextObjective

__all__ = [
    "Alike",
    "Distilled",
    "EmbeddingServer",
    "Encoded",
    "Encoder",
    "Evaluation",
    "Every",
    "Exported",
    "Hit",
    "Hybrid",
    "Indexed",
    "Mined",
    "Plan",
    "SearchIndex",
    "TextBatch",
    "TextObjective",
    "TrainOptions",
    "Trained",
    "distill",
    "duplicates",
    "encode",
    "evaluate",
    "export",
    "index",
    "losses",
    "merge_shards",
    "mine",
    "open_index",
    "plan",
    "push",
    "search",
    "search_every",
    "serve",
    "train",
]

_PLACES = {
    "aoe_train._distill.static": ("Distilled",),
    "aoe_train._encode": ("Encoded",),
    "aoe_train._encoder": ("Encoder",),
    "aoe_train._export.export": ("Exported",),
    "aoe_train._face.distilling": ("distill",),
    "aoe_train._face.encoding": ("encode", "merge_shards"),
    "aoe_train._evaluate.evaluation": ("Evaluation",),
    "aoe_train._face.evaluation": ("evaluate",),
    "aoe_train._face.exporting": ("export", "push"),
    "aoe_train._face.mining": ("Mined", "mine"),
    "aoe_train._face.searching": ("duplicates", "index", "open_index", "search", "search_every"),
    "aoe_train._face.serving": ("serve",),
    "aoe_train._face.training": ("Plan", "TrainOptions", "Trained", "plan", "train"),
    "aoe_train._hybrid": ("Hybrid",),
    "aoe_train._search.alike": ("Alike",),
    "aoe_train._search.ask": ("Hit", "SearchIndex"),
    "aoe_train._search.build": ("Indexed",),
    "aoe_train._search.every": ("Every",),
    "aoe_train._serve.server": ("EmbeddingServer",),
    "aoe_train._text_model": ("TextBatch",),
    "aoe_train._text_objective": ("TextObjective",),
    "aoe_train.losses": ("losses",),
}

__getattr__, __dir__ = lazy_names(
    __name__, {name: module for module, names in _PLACES.items() for name in names}
)
