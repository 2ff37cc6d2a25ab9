"""RAN, the Recurrent Attention Network: pre-training, and the published checkpoints as model folders."""
