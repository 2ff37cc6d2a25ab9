"""Files of texts to files of vectors.

```
source (over lines)  ─texts─►  shards  ─vectors─►  partial  ─────────►  OUT.npy
   └──────────────────────columns─────────────────────┴────  table  ─►  OUT.parquet
```
"""

from aoe_train._encode.shards import STDIN, Encoded, encode_file

__all__ = ["STDIN", "Encoded", "encode_file"]
