"""A pair dataset from hours of GH Archive, by maps over files.

```
hours                            which hours, and their files
maps                             tasks from files to files; a process pool, or a Ray cluster, runs them
extract ► rows                   the first map: an hour's file to rows; a month's rows, sorted into buckets
judge ► threads                  the second: a bucket's rows to verdicts, clusters, texts
settle ► stored                  splits over all buckets, and the third map: negatives
write                            shards of rows, counts, card
run                              all of it in turn
```

Verdicts, texts, pairs, splits and rows are made by the functions that `gis build` uses.
"""
