"""Our models as mteb sees them. Imports mteb, which takes seconds: to be imported where it is needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb.cache import ResultCache
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction

from aoe_train._evaluate.vectors import Vectors
from pairkit.errors import ConfigError
from pairkit.files import write_errors

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.types import BatchedInput, PromptType
    from torch.utils.data import DataLoader

    from aoe_train._evaluate.embedders.embedder import Embedder

_COMPARED = ("cosine", "dot")
_ORGANISATION = "local"  # mteb wants organisation/name


class MtebModel(AbsEncoder):
    """An mteb encoder whose vectors an `Embedder` makes.

    Texts have the prompt that mteb chooses for models of sentence-transformers: the one that is named after
    the task, its kind, or `query` and `document`, else the default one.
    mteb files results under the name and, as the revision, the embedder's identity, so a model that was
    trained further counts as another one.
    """

    mteb_model_meta: ModelMeta
    model_prompts: dict[str, str]

    def __init__(self, embedder: Embedder) -> None:
        if embedder.similarity not in _COMPARED:
            raise ConfigError(
                f"{embedder.name}: its vectors are compared by {embedder.similarity}, which mteb can't do;"
                f" change similarity_fn_name to {' or '.join(_COMPARED)}"
            )
        self.model = embedder
        self.model_prompts = {**embedder.prompts.known, "document": embedder.prompts.document}
        name = embedder.name if embedder.name.count("/") == 1 else f"{_ORGANISATION}/{_plain(embedder.name)}"
        dim = embedder.encode(["one text, to see how many numbers its vector has"]).shape[1]
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name,
                "revision": embedder.identity,
                "embed_dim": dim,
                "similarity_fn_name": ScoringFunction(embedder.similarity),
            }
        )

    def encode(
        self,
        inputs: DataLoader[BatchedInput],
        *,
        task_metadata: TaskMetadata,
        hf_split: str,  # noqa: ARG002 - of this and the next mteb's interface alone has need
        hf_subset: str,  # noqa: ARG002
        prompt_type: PromptType | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> np.ndarray:
        """Vectors, float32 (text, dim), of all texts that the batches hold; equal ones are encoded once.

        Raises:
            DataError: Vectors that are not finite.
            RemoteError: An endpoint could not be asked.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        name = self.get_prompt_name(task_metadata, prompt_type)
        words = None if name is None else self.model_prompts[name]
        vectors = Vectors(partial(self.model.encode, prompt=words), [texts])
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
