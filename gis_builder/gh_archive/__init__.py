"""Makes a pair dataset from hours of GH Archive, by maps over files.

```
runners                          tasks from files to files, in a process pool or on a Ray cluster
extract ► archive_rows           first map: the file of an hour to rows; rows of a month, sorted into buckets
judge_threads                    second map: the rows of a bucket to threads, verdicts, clusters, texts
combined_buckets ► settle        splits over all buckets; third map: negatives
write                            shards of rows, counts, card
archive_run                      all steps
```

Verdicts, texts, pairs, splits and rows come from the same functions as in `gis build`.
"""
