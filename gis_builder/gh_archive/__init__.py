"""Makes a pair dataset from hours of GH Archive, by maps over files.

```
hours                            ranges of hours and their files
maps                             tasks from files to files, and the names of these files
runners                          a process pool or a Ray cluster that runs tasks
extract ► rows                   first map: the file of an hour to rows; rows of a month, sorted into buckets
judge ► threads                  second map: the rows of a bucket to verdicts, clusters, texts
settle ► stored                  splits over all buckets; third map: negatives
write                            shards of rows, counts, card
run                              all steps
```

Verdicts, texts, pairs, splits and rows come from the same functions as in `gis build`.
"""
