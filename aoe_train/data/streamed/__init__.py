"""Training rows whose texts, numbers and labels stay on disk: the same `Examples` as rows read into memory.

The shards are read twice. First each text becomes a digest of 128 bits, while rows and labels are checked
(`reading`). Sorted, a share of them at a time, the digests say which texts are equal, and so which number
each has (`numbering`). The second reading keeps the texts that are new. In memory are some thousand rows, one
share of the digests and the distinct labels.
"""
