"""The sizes of a RAN."""

from typing import Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

LayerNormStyle = Literal["standard", "second-moment"]
MemoryStart = Literal["projected", "carried"]


@strict
class RanConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Configuration of a Recurrent Attention Network; the defaults make the base size, 87M parameters."""

    model_type = "ran"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 4
    num_attention_heads: int = 12
    head_dim: int = 256
    window_size: int = 256
    min_window_size: int = 16
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    layer_norm_eps: float = 1e-7
    ln_style: LayerNormStyle = "standard"
    memory_start: MemoryStart = "projected"
    rotary_base: float | int = 10000.0
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def validate_sizes(self) -> None:
        """Refuse sizes that no RAN can have."""
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} is odd; rotary positions turn pairs of dimensions")
        if not 1 <= self.min_window_size <= self.window_size:
            raise ValueError(
                f"min_window_size {self.min_window_size} is not within 1 and window_size {self.window_size}"
            )
