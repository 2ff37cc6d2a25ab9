"""Files of texts to files of vectors.

```
source  ─texts─►  parts  ─►  a model, or workers  ─vectors─►  partial  ─  vector_file  ─►  OUT.npy
   └────────────────columns───────────────────────────────────────┴─────  table  ─►  OUT.parquet
                  worker_spec ─►  workers (here), on_ray (a cluster's actors)
record       what an output was made of, and the ranges of int8      shards of OUT  ─►  merge  ─►  OUT
text_vectors a list of texts ─►  vectors in a folder, by what they are made of
```
"""

from aoe_train.encoding.merge import merge_shards
from aoe_train.encoding.parts import VectorShard
from aoe_train.encoding.record import read_ranges
from aoe_train.encoding.run import STDIN, Embed, Encoded, encode_file

__all__ = ["STDIN", "Embed", "Encoded", "VectorShard", "encode_file", "merge_shards", "read_ranges"]
