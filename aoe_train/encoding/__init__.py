"""Files of texts to files of vectors.

```
source (over lines)  ─texts─►  parts  ─►  a model, or workers  ─vectors─►  partial  ─  codes  ─►  OUT.npy
   └──────────────────────columns─────────────────────────────────────────────┴──────  table  ─►  OUT.parquet
                          orders ─►  workers (here), on_ray (a cluster's actors)
calibration          ─ranges of int8─►  codes      shards of OUT  ─►  merge  ─►  codes, table
listed               a list of texts ─►  vectors in a folder, by what they are made of
```
"""

from aoe_train.encoding.calibration import read_ranges
from aoe_train.encoding.merge import merge_shards
from aoe_train.encoding.parts import Shard
from aoe_train.encoding.run import STDIN, Embed, Encoded, encode_file

__all__ = ["STDIN", "Embed", "Encoded", "Shard", "encode_file", "merge_shards", "read_ranges"]
