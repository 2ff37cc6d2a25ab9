"""Running a transformer over texts that are packed without padding, and quickly so on a CPU.

All texts of a batch are in one row of tokens, so that linear layers, norms and activations never touch a
padding token; only attention has to know where a text begins and ends.

Modules: `sequences` (where texts are), `attention` (by blocks, flex attention or `flash`), `layers` (linear,
dropout, and embedding rows that training touches) and `run` (calling a backbone on them).
"""

import os

# oneDNN compiles a kernel for each number of rows that a matrix product has, and torch keeps the last 1,024
# of them twice over, half a MiB each. Packed texts bring another number with almost every batch, so that a
# long process would grow by a GiB; a forward pass needs some ten. Both are read at the first product.
for _cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "32")
