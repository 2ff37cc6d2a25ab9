"""Running a transformer on texts that are packed without padding.

All texts of a batch form one row of tokens, so linear layers, norms and activations compute no padding; only
attention needs the boundaries of texts.

Modules: `sequences` (text boundaries; calls a backbone), `attention` (also torch's FlashAttention) and `layers`
(fast linear layers and dropout for CPUs, embeddings that train only used rows).
"""

import os

# oneDNN compiles a kernel for each number of rows in a matrix product. oneDNN and torch each cache the last
# 1,024 kernels of half a MiB. Almost every packed batch has another number of rows, so a long process would
# grow by a GiB; a forward pass needs about ten. Both variables are read at the first product.
for _cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "32")
