"""Train, evaluate, export and search with text-embedding models.

>>> import aoe_train
>>> run = aoe_train.train("pairs.tsv", backbone="model", out="trained", lr=1e-3, progress=False)
>>> vectors = run.encoder.encode(["A plane is taking off.", "An air plane is taking off."])
>>> vectors.shape == (2, run.encoder.dim)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.base.cli.startup import lazy_names

if TYPE_CHECKING:
    from aoe_train.api.encoding import encode as encode
    from aoe_train.api.evaluation import evaluate as evaluate
    from aoe_train.api.exporting import distill as distill
    from aoe_train.api.exporting import export as export
    from aoe_train.api.mining import Mined as Mined
    from aoe_train.api.mining import mine as mine
    from aoe_train.api.sampling import PairSample as PairSample
    from aoe_train.api.sampling import sample_pairs as sample_pairs
    from aoe_train.api.searching import duplicates as duplicates
    from aoe_train.api.searching import index as index
    from aoe_train.api.searching import open_index as open_index
    from aoe_train.api.searching import search as search
    from aoe_train.api.searching import search_every as search_every
    from aoe_train.api.serving import serve as serve
    from aoe_train.api.trained import Plan as Plan
    from aoe_train.api.trained import Trained as Trained
    from aoe_train.api.training import plan as plan
    from aoe_train.api.training import train as train
    from aoe_train.encoding.encode_run import Encoded as Encoded
    from aoe_train.evaluation import tasks as tasks
    from aoe_train.evaluation.scores import Evaluation as Evaluation
    from aoe_train.exporting.export import Exported as Exported
    from aoe_train.exporting.static_model import Distilled as Distilled
    from aoe_train.model import ran as ran
    from aoe_train.model.encoder import Encoder as Encoder
    from aoe_train.model.hybrid import Hybrid as Hybrid
    from aoe_train.model.text_model import TextBatch as TextBatch
    from aoe_train.objectives import losses as losses
    from aoe_train.searching.build_index import Indexed as Indexed
    from aoe_train.searching.index import BatchSearch as BatchSearch
    from aoe_train.searching.index import IndexHit as IndexHit
    from aoe_train.searching.index import SearchIndex as SearchIndex
    from aoe_train.searching.serve.embedding_server import EmbeddingServer as EmbeddingServer
    from aoe_train.searching.similar_texts import NearDuplicates as NearDuplicates
    from aoe_train.training.pair_model import TextObjective as TextObjective

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "aoe_train.api.encoding": "encode",
        "aoe_train.api.evaluation": "evaluate",
        "aoe_train.api.exporting": "distill export",
        "aoe_train.api.mining": "Mined mine",
        "aoe_train.api.sampling": "PairSample sample_pairs",
        "aoe_train.api.searching": "duplicates index open_index search search_every",
        "aoe_train.api.serving": "serve",
        "aoe_train.api.trained": "Plan Trained",
        "aoe_train.api.training": "plan train",
        "aoe_train.encoding.encode_run": "Encoded",
        "aoe_train.evaluation": "tasks",
        "aoe_train.evaluation.scores": "Evaluation",
        "aoe_train.exporting.export": "Exported",
        "aoe_train.exporting.static_model": "Distilled",
        "aoe_train.model": "ran",
        "aoe_train.model.encoder": "Encoder",
        "aoe_train.model.hybrid": "Hybrid",
        "aoe_train.model.text_model": "TextBatch",
        "aoe_train.objectives": "losses",
        "aoe_train.searching.build_index": "Indexed",
        "aoe_train.searching.index": "BatchSearch IndexHit SearchIndex",
        "aoe_train.searching.similar_texts": "NearDuplicates",
        "aoe_train.searching.serve.embedding_server": "EmbeddingServer",
        "aoe_train.training.pair_model": "TextObjective",
    },
)
