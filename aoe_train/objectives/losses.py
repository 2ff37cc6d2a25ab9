"""The loss parts as losses for sentence-transformers' `SentenceTransformerTrainer`.

They take pairs with labels (0 and 1, or scores from 0 to 1), or triplets: columns for anchor, positive and
one or more negatives. Contrastive losses also take unlabelled positive pairs. In-batch negatives come from
one process, while in `aoe_train.train` they come from all processes.

Example:
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from aoe_train.objectives.losses import AoELoss

    model = SentenceTransformer("all-MiniLM-L6-v2")
    SentenceTransformerTrainer(model=model, train_dataset=pairs, loss=AoELoss(model)).train()
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from aoe_train.objectives.labelled_pairs import BatchTeachers, RowTexts
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.objective_checks import POSITIVE_SHARE, TeacherInfo
from aoe_train.objectives.objective_settings import RANKED, ObjectiveSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import load_settings

if TYPE_CHECKING:
    from jaxtyping import Int
    from sentence_transformers import SentenceTransformer

__all__ = ["AngleLoss", "AoELoss", "CoSENTLoss", "ContrastiveLoss"]

# Token positions with distinct factors in the hash of a text.
_MAX_POSITIONS = 1 << 16

_ANGLE = """
@inproceedings{li-li-2024-aoe,
    title = "{A}o{E}: Angle-optimized Embeddings for Semantic Textual Similarity",
    author = "Li, Xianming and Li, Jing",
    booktitle = "Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics",
    year = "2024",
    pages = "1825--1839",
}
"""
_COSENT = """
@article{10531646,
    title = {CoSENT: Consistent Sentence Embedding via Similarity Ranking},
    author = {Huang, Xiang and Peng, Hao and Zou, Dongcheng and Liu, Zhiwei and Li, Jianxin and Liu, Kay and
    Wu, Jia
        and Su, Jianlin and Yu, Philip S.},
    journal = {IEEE/ACM Transactions on Audio, Speech, and Language Processing},
    year = {2024},
    doi = {10.1109/TASLP.2024.3402087},
}
"""
_SIMCSE = """
@inproceedings{gao-etal-2021-simcse,
    title = "{S}im{CSE}: Simple Contrastive Learning of Sentence Embeddings",
    author = "Gao, Tianyu and Yao, Xingcheng and Chen, Danqi",
    booktitle = "Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing",
    year = "2021",
    pages = "6894--6910",
}
"""


def __dir__() -> list[str]:
    return __all__


class _Loss(nn.Module):
    """An objective on a SentenceTransformer's vectors of a batch; the model card has its `citation`."""

    citation = _ANGLE

    def __init__(
        self,
        model: SentenceTransformer,
        config: dict[str, Any],
        guide: SentenceTransformer | None = None,
        **settings: object,
    ) -> None:
        super().__init__()
        self.model = model
        self.guide = guide
        # Then the guide can read the model's tokens: same truncation and same vocabulary.
        self._shares_tokens = (
            guide is not None
            and guide.max_seq_length == model.max_seq_length
            and guide.tokenizer.get_vocab() == model.tokenizer.get_vocab()
        )
        self.objective = Objective(
            load_settings(ObjectiveSettings, flags=settings),
            dim=int(model.get_embedding_dimension() or 0),
            kind="graded",  # labels 0 and 1 are a special case
            label_range=(0.0, 1.0),
            teachers=TeacherInfo(guide=guide is not None),
        )
        self._config = config if guide is None else {**config, "guide": guide}

    def forward(
        self,
        sentence_features: Iterable[dict[str, Tensor]],
        labels: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch."""
        features = list(sentence_features)
        guided = None
        if self.guide is not None:
            guided = self._guide_vectors(self.guide, features)
        vectors = torch.stack(
            [self.model(column)["sentence_embedding"] for column in features], dim=1
        )
        return self.compute_loss_from_embeddings(
            vectors, labels, _text_ids(features), guided
        )

    @torch.no_grad()
    def _guide_vectors(
        self, guide: SentenceTransformer, features: list[dict[str, Tensor]]
    ) -> Tensor:
        """The guide's vectors (row, column, guide), from the model's tokens if both tokenise the same way."""
        from sentence_transformers.util import batch_to_device

        if self._shares_tokens:
            # The guide adds keys, so it gets copies.
            columns = [dict(column) for column in features]
        else:
            columns = []
            for column in features:
                texts = self.model.tokenizer.batch_decode(
                    column["input_ids"], skip_special_tokens=True
                )
                tokens = guide.preprocess(texts)
                columns.append(batch_to_device(tokens, guide.device))
        return torch.stack(
            [guide(column)["sentence_embedding"] for column in columns], dim=1
        )

    def compute_loss_from_embeddings(
        self,
        vectors: Tensor,
        labels: Tensor | None,
        texts: RowTexts | None = None,
        guided: Tensor | None = None,
    ) -> Tensor:
        """The loss of vectors (row, column, dim)."""
        rows, columns, _ = vectors.shape
        ranks = RANKED & self.objective.weights.keys()
        if columns < 2 or (columns == 2 and labels is None and ranks):
            found = "1 column" if columns == 1 else f"{columns} columns"
            raise ConfigError(
                f"{type(self).__name__}: found {found} and {'no' if labels is None else 'a'} label;"
                " expected two columns and a label, or anchor, positive and one or more negatives"
            )
        if texts is None:
            distinct = torch.arange(rows * columns, device=vectors.device)
            texts = distinct.view(rows, columns)
        pair_labels = None
        if labels is not None and columns == 2:
            pair_labels = labels.view(-1).float()
            low, high = torch.stack(pair_labels.aminmax()).tolist()
            if not 0 <= low <= high <= 1:
                raise DataError(
                    f"{type(self).__name__}: found labels from {low:g} to {high:g}; expected 0 to 1: divide"
                    " them by the scale's maximum, such as 5 for STS-B"
                )
        parts = self.objective(vectors, pair_labels, texts, BatchTeachers(guide=guided))
        loss: Tensor = parts["loss"]
        return loss

    def get_config_dict(self) -> dict[str, object]:
        """The options, for the model card."""
        return dict(self._config)


class AoELoss(_Loss):
    """Angle and contrastive loss: AoE (ACL 2024), Eq. 5."""

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        angle_weight: float = 1.0,
        contrastive_weight: float = 1.0,
        angle_tau: float = 1.0,
        contrastive_tau: float = 0.05,
        hard_negatives: bool = True,
        positive_from: float = POSITIVE_SHARE,
    ) -> None:
        """Set weights and temperatures."""
        shared: dict[str, Any] = {
            "hard_negatives": hard_negatives,
            "positive_from": positive_from,
        }
        config = {
            "angle_weight": angle_weight,
            "contrastive_weight": contrastive_weight,
            "angle_tau": angle_tau,
            "contrastive_tau": contrastive_tau,
            **shared,
        }
        weights = {"angle": angle_weight, "contrastive": contrastive_weight}
        taus = {"angle": angle_tau, "contrastive": contrastive_tau}
        super().__init__(model, config, weights=weights, tau=taus, **shared)


class AngleLoss(_Loss):
    """Ranking of pairs by angles in complex space: AnglE (arXiv 2309.12871), Eq. 7."""

    def __init__(self, model: SentenceTransformer, *, tau: float = 1.0) -> None:
        """Set the temperature."""
        super().__init__(model, {"tau": tau}, weights={"angle": 1}, tau={"angle": tau})


class CoSENTLoss(_Loss):
    """Ranking of pairs by cosine: CoSENT, the first part of AnglE."""

    citation = _COSENT

    def __init__(
        self, model: SentenceTransformer, *, tau: float = 0.05, margin: float = 0.0
    ) -> None:
        """Set temperature and margin."""
        config = {"tau": tau, "margin": margin}
        super().__init__(
            model, config, weights={"cosent": 1}, tau={"cosent": tau}, margin=margin
        )


class ContrastiveLoss(_Loss):
    """Supervised InfoNCE with in-batch negatives, except equal texts: AoE, Eq. 4; SimCSE."""

    citation = _SIMCSE

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        tau: float = 0.05,
        hard_negatives: bool = True,
        symmetric: bool = False,
        positive_from: float = POSITIVE_SHARE,
        guide: SentenceTransformer | None = None,
        guide_margin: float = 0.0,
        guide_margin_strategy: Literal["absolute", "relative"] = "absolute",
        contrast_anchors: bool = False,
        contrast_positives: bool = False,
    ) -> None:
        """Set the temperature and the choice of negatives."""
        config: dict[str, Any] = {
            "hard_negatives": hard_negatives,
            "symmetric": symmetric,
            "positive_from": positive_from,
            "guide_margin": guide_margin,
            "guide_margin_strategy": guide_margin_strategy,
            "contrast_anchors": contrast_anchors,
            "contrast_positives": contrast_positives,
        }
        parts = {"weights": {"contrastive": 1}, "tau": {"contrastive": tau}}
        super().__init__(model, {"tau": tau, **config}, guide, **parts, **config)


def _text_ids(features: list[dict[str, Any]]) -> RowTexts | None:
    """Ids of texts, a hash of their tokens; None unless all columns are tokens padded to one length."""
    hashes = []
    for column in features:
        ids = column.get("input_ids")
        mask = column.get("attention_mask")
        if not (isinstance(ids, Tensor) and isinstance(mask, Tensor)):
            return None
        if ids.ndim != 2 or ids.shape != mask.shape:
            return None
        hashes.append(_hashes(ids, mask))
    return torch.stack(hashes, dim=1)


def _hashes(
    ids: Int[Tensor, "row token"], mask: Int[Tensor, "row token"]
) -> Int[Tensor, " row"]:
    """A hash of each text that ignores padding: the sum of token * factor of its position, modulo 2^64."""
    positions = (mask.cumsum(1) - 1).clamp(0, _MAX_POSITIONS - 1)
    factors = _factors(ids.device)[positions]
    return ((ids + 1) * mask * factors).sum(1)


@cache
def _factors(device: torch.device) -> Int[Tensor, " token"]:
    """A fixed odd random number for each position."""
    generator = torch.Generator().manual_seed(0)
    random = torch.randint(1, 2**62, (_MAX_POSITIONS,), generator=generator)
    return (2 * random + 1).to(device)
