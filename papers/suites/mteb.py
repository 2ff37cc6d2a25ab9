"""MTEB's English tasks (AoE paper, section 5.1) with the package mteb, which downloads their data.

Each task has its own main score; the paper reports their mean over the 56 tasks of `MTEB(eng, v1)`. Queries
get the model's prompt `query`, documents and other texts its default prompt, if it has these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train import Encoder
from pairkit.base.extras import needed_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from papers.reproduce.recipe import Precision

MTEB = "mteb"
_ENGLISH = "MTEB(eng, v1)"


def mteb_tasks(names: Sequence[str]) -> Any:
    """The tasks with these names; without names, all English ones."""
    with needed_for("suite mteb", "mteb"):
        import mteb
    if names:
        return mteb.get_tasks(tasks=[*names])
    return mteb.get_benchmark(_ENGLISH).tasks


def evaluate_mteb(
    model: Any, names: Sequence[str], *, precision: Precision = "auto"
) -> dict[str, float]:
    """The main score of each task, in [0, 1].

    The model is a folder or Hub id, an encoder, or a function from texts to vectors.
    """
    tasks = mteb_tasks(names)
    import mteb

    if isinstance(model, str):
        model = Encoder.load(model, precision=precision, inference_only=True)
    results = mteb.evaluate(
        _Model(model), tasks, co2_tracker=False, cache=None, show_progress_bar=False
    ).task_results
    return {result.task_name: float(result.get_score()) for result in results}


class _Model:
    """A model for mteb."""

    def __init__(self, model: Any) -> None:
        from mteb.models import ModelMeta

        self._model = model
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": "aoe/model", "revision": "1"}
        )

    def encode(
        self,
        inputs: Iterable[Mapping[str, list[str]]],
        *,
        prompt_type: Any = None,
        **_: Any,
    ) -> np.ndarray:
        """The vectors of all texts."""
        texts = [text for batch in inputs for text in batch["text"]]
        if not isinstance(self._model, Encoder):
            return np.asarray(self._model(texts))
        if prompt_type is not None and prompt_type.value == "query":
            return self._model.encode_query(texts)
        return self._model.encode(texts)

    def similarity(self, first: Any, second: Any) -> Any:
        """The cosine of each first vector with each second one."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The cosine of each pair of vectors."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(first, second)
