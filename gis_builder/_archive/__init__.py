"""A pair dataset from hours of GH Archive, by tasks that read files and write one file each.

```
hours, source ► mirror/         which hours, and where their files are: in a folder, or on a server
tasks ► engine, on_ray          a task's name and file; who runs tasks: this process, others, a cluster
objects                         files of tasks in an object store
extract ► events, rows, ledger  an hour's file to rows of issues, comments, closings      (an hour)
compact                         a month's hours to one file, of a share of repositories   (a month's share)
judge ► threads, judging        rows to threads, verdicts, texts, positives               (a partition)
topup ► rejudge                 originals that no hour has, from GitHub                   (the driver)
settle ► texts, judged          near-identical texts, splits, shares of the negatives     (the driver)
negatives                       negatives within a repository and split                   (a partition)
write ► coverage                shards of rows, counts, card                              (the driver)
plan ► run                      which tasks there are, and all of it in turn
```

Verdicts, texts, pairs, splits and rows are made by the functions that `gis build` makes them with.
"""
