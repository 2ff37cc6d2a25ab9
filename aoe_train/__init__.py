"""Train, evaluate, export and search with text-embedding models.

>>> import aoe_train
>>> run = aoe_train.train("pairs.tsv", backbone="model", out="trained", lr=1e-3, progress=False)
>>> vectors = run.encoder.encode(["A plane is taking off.", "An air plane is taking off."])
>>> vectors.shape == (2, run.encoder.dim)
True
"""

from __future__ import annotations

from pairkit.base.cli.startup import lazy_names

_PUBLIC_NAMES = {
    "aoe_train.api.encoding": "encode",
    "aoe_train.api.evaluation": "evaluate",
    "aoe_train.api.exporting": "distill export serve",
    "aoe_train.api.mining": "Mined PairSample mine sample_pairs",
    "aoe_train.api.searching": "duplicates index open_index search search_every",
    "aoe_train.api.training": "Trained plan train",
    "aoe_train.encoding.encode_run": "Encoded",
    "aoe_train.evaluation": "tasks",
    "aoe_train.evaluation.scores": "Evaluation",
    "aoe_train.exporting.export": "Exported",
    "aoe_train.exporting.static_model": "Distilled",
    "aoe_train.model": "ran",
    "aoe_train.model.encoder": "Encoder",
    "aoe_train.model.text_model": "TextBatch",
    "aoe_train.objectives": "losses",
    "aoe_train.searching.build_index": "Indexed",
    "aoe_train.searching.index": "BatchSearch IndexHit SearchHits SearchIndex",
    "aoe_train.searching.similar_texts": "NearDuplicates",
    "aoe_train.searching.serve.embedding_server": "EmbeddingServer",
    "aoe_train.training.pair_model": "TextObjective",
    "aoe_train.training.train_plan": "Plan",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC_NAMES)
