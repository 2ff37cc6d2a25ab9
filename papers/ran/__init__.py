"""RAN, the Recurrent Attention Network: pre-training, and conversion of published checkpoints."""
