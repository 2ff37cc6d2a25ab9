"""Files of texts to files of vectors.

```
source (over lines)  ─texts─►  shards  ─vectors─►  partial  ─  codes  ─►  OUT.npy
   └──────────────────────columns─────────────────────┴────────  table  ─►  OUT.parquet
calibration          ─ranges of int8─►  codes
listed               a list of texts ─►  vectors in a folder, by what they are made of
```
"""

from aoe_train._encode.calibration import read_ranges
from aoe_train._encode.shards import STDIN, Encoded, encode_file

__all__ = ["STDIN", "Encoded", "encode_file", "read_ranges"]
