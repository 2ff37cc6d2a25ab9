"""Our models as mteb sees them. Imports mteb, which takes seconds: to be imported where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.cache import ResultCache
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction

from aoe_train._evaluate.vectors import Vectors
from pairkit.files import write_errors

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.types import BatchedInput, PromptType
    from torch.utils.data import DataLoader

    from aoe_train._evaluate.embedders.embedder import Embedder

_ORGANISATION = "local"  # mteb wants organisation/name


class MtebModel(AbsEncoder):
    """An mteb encoder whose vectors an `Embedder` makes, compared by cosine.

    Prompts that mteb knows for a task are not used: a model of ours brings its own, and adds it itself.
    mteb files results under the name and, as the revision, the embedder's identity, so a model that was
    trained further counts as another one.
    """

    mteb_model_meta: ModelMeta

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder
        name = embedder.name if embedder.name.count("/") == 1 else f"{_ORGANISATION}/{_plain(embedder.name)}"
        dim = embedder.encode(["one text, to see how many numbers its vector has"]).shape[1]
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name,
                "revision": embedder.identity,
                "embed_dim": dim,
                "similarity_fn_name": ScoringFunction.COSINE,
            }
        )

    def encode(
        self,
        inputs: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,  # noqa: ARG002 - of this and the rest mteb's interface alone has need
        hf_split: str,  # noqa: ARG002
        hf_subset: str,  # noqa: ARG002
        prompt_type: PromptType | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> np.ndarray:
        """Vectors, float32 (text, dim), of all texts that the batches hold; equal ones are encoded once.

        Raises:
            DataError: Vectors that are not finite.
            RemoteError: An endpoint could not be asked.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        vectors = Vectors(self.model.encode, [texts])
        found: np.ndarray = vectors.matrix[vectors.rows(texts)]
        return found


def _plain(name: str) -> str:
    return name.strip("/").rsplit("/", 1)[-1] or "model"


class Results(ResultCache):
    """mteb's own folder of results; what can't be written there, and that alone, is our error."""

    def __init__(self, folder: Path) -> None:
        """Open or make the folder.

        Raises:
            ConfigError: It can't be made.
        """
        with write_errors(folder):
            super().__init__(folder)

    def save_to_cache(self, *args: Any, **kwargs: Any) -> None:
        """Keep a task's result; see mteb.

        Raises:
            ConfigError: It can't be written.
        """
        with write_errors(self.cache_path):
            super().save_to_cache(*args, **kwargs)
