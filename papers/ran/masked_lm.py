"""RAN with a head that predicts masked tokens."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name
from transformers.modeling_outputs import MaskedLMOutput
from transformers.utils.generic import can_return_tuple

from aoe_train import ran
from papers.ran.masking import IGNORED


class MaskedLMHead(nn.Module):
    """Maps token vectors to vectors that are compared with the embeddings."""

    def __init__(self, config: ran.RanConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = ran.RanLayerNorm(config)

    def forward(self, hidden: Float[Tensor, "token dim"]) -> Float[Tensor, "token dim"]:
        """LN(swish(dense(x)))."""
        return self.norm(F.silu(self.dense(self.dropout(hidden))))  # type: ignore[no-any-return]


class RanForMaskedLM(ran.RanPreTrainedModel):  # type: ignore[no-untyped-call]
    """RAN for pre-training; the output matrix is the embedding matrix."""

    _tied_weights_keys = {"lm_head.weight": "ran.embed_tokens.weight"}  # noqa: RUF012
    accepts_loss_kwargs = True  # the trainer then passes `num_items_in_batch`

    def __init__(self, config: ran.RanConfig) -> None:
        super().__init__(config)
        self.ran = ran.RanModel(config)
        self.head = MaskedLMHead(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Int[Tensor, "row column"],
        attention_mask: Int[Tensor, "row column"] | None = None,
        labels: Int[Tensor, "row column"] | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> MaskedLMOutput:
        """Predict tokens."""
        hidden = self.ran(input_ids, attention_mask).last_hidden_state
        if labels is None:
            return MaskedLMOutput(logits=self.lm_head(self.head(hidden)))
        labelled = labels != IGNORED
        logits = self.lm_head(self.head(hidden[labelled]))
        total = F.cross_entropy(logits.float(), labels[labelled], reduction="sum")
        count = num_items_in_batch
        if count is None:
            # Without labels, the loss is 0 instead of NaN.
            count = labelled.sum().clamp(min=1)
        return MaskedLMOutput(loss=total / count, logits=logits)
